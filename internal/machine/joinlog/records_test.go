// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func record(step v1alpha1.JoinStep, ms int) v1alpha1.JoinRecord {
	return v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(time.UnixMilli(int64(ms)))}
}

func TestMerge(t *testing.T) {
	tests := []struct {
		name                string
		records, more, want []v1alpha1.JoinRecord
	}{
		{"nothing", nil, nil, nil},
		{
			"what was seen first stays",
			[]v1alpha1.JoinRecord{record(v1alpha1.StepLaunched, 1)},
			[]v1alpha1.JoinRecord{record(v1alpha1.StepLaunched, 2)},
			[]v1alpha1.JoinRecord{record(v1alpha1.StepLaunched, 1)},
		},
		{
			"in order",
			[]v1alpha1.JoinRecord{record(v1alpha1.StepReady, 9), record(v1alpha1.StepLaunched, 1)},
			[]v1alpha1.JoinRecord{record(v1alpha1.StepNodeRegistered, 5)},
			[]v1alpha1.JoinRecord{record(v1alpha1.StepLaunched, 1), record(v1alpha1.StepNodeRegistered, 5), record(v1alpha1.StepReady, 9)},
		},
		{"unknown steps are left out", []v1alpha1.JoinRecord{record("Dancing", 1)}, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Merge(test.records, test.more...)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
		})
	}
}
