// SPDX-License-Identifier: Apache-2.0

package template

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/ec2/ec2resourcetest"
)

// Every filter is asked about versions that say everything, nothing, and half of it.
func TestFilters(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 22, 12, 0, 0, 0, time.FixedZone("east", 3600)))
	kept := &v1alpha1.LaunchTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "lt-0000000000000000a", CreationTimestamp: at},
		Spec:       v1alpha1.LaunchTemplateSpec{Name: "web", DefaultVersion: 2, LatestVersion: 4, Tags: v1alpha1.Tags{"team": "blue"}},
	}
	for i, data := range []string{
		`{"EbsOptimized":true,"ImageId":"ami-1","InstanceType":"m5.large","IamInstanceProfile":{"Arn":"arn:aws:iam::000000000000:instance-profile/a"},"MetadataOptions":{"HttpEndpoint":"enabled","HttpTokens":"required"}}`,
		`{}`, `{"EbsOptimized":false,"IamInstanceProfile":{"Name":"a"},"MetadataOptions":{"HttpPutResponseHopLimit":2}}`, `{"MetadataOptions":{"HttpTokens":"optional"}}`,
	} {
		kept.Spec.Versions = append(kept.Spec.Versions, v1alpha1.LaunchTemplateVersion{Number: int64(i + 1), CreateTime: at, Data: runtime.RawExtension{Raw: []byte(data)}})
	}
	ec2resourcetest.Golden(t, "testdata/filters.txt", launchTemplateNoun(), []launchTemplate{*showLaunchTemplate(kept), *showLaunchTemplate(&v1alpha1.LaunchTemplate{})})
	versions, err := versionsOf(kept, &describeVersionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	ec2resourcetest.Golden(t, "testdata/versionfilters.txt", versionNoun(), versions)
}
