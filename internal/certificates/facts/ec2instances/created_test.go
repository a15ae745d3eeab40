// SPDX-License-Identifier: Apache-2.0

package ec2instances

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// LaunchTime moves on when an instance that was stopped is started again. The time at which its primary network
// interface was attached does not.
func TestCreated(t *testing.T) {
	first, again := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	attached := func(index int32, at *time.Time) types.InstanceNetworkInterface {
		return types.InstanceNetworkInterface{Attachment: &types.InstanceNetworkInterfaceAttachment{DeviceIndex: aws.Int32(index), AttachTime: at}}
	}
	for name, tc := range map[string]struct {
		instance types.Instance
		want     time.Time
	}{
		"started again": {types.Instance{LaunchTime: &again, NetworkInterfaces: []types.InstanceNetworkInterface{attached(0, &first)}}, first},
		"another interface, moved here": {types.Instance{LaunchTime: &again, NetworkInterfaces: []types.InstanceNetworkInterface{
			attached(1, &first), attached(0, &again), {},
		}}, again},
		"no interfaces": {types.Instance{LaunchTime: &again}, again},
		"nothing":       {types.Instance{NetworkInterfaces: []types.InstanceNetworkInterface{attached(0, nil)}}, time.Time{}},
	} {
		if got := created(tc.instance); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
