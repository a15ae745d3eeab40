// SPDX-License-Identifier: Apache-2.0

package region_test

import (
	"slices"
	"testing"

	"muster.dev/muster/internal/aws/region"
)

func TestServiceNames(t *testing.T) {
	r, err := region.Find("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	names := r.ServiceNames()
	for _, want := range []string{
		"eks.eu-west-1.amazonaws.com", "ec2.eu-west-1.amazonaws.com", "autoscaling.eu-west-1.amazonaws.com", "ssm.eu-west-1.amazonaws.com",
		"kms.eu-west-1.amazonaws.com", "logs.eu-west-1.amazonaws.com", "sts.eu-west-1.amazonaws.com", "sts.eu-west-1.api.aws",
		"eks-auth.eu-west-1.api.aws", "sts.amazonaws.com", "iam.amazonaws.com", "sqs.eu-west-1.amazonaws.com", "events.eu-west-1.amazonaws.com",
		"fis.eu-west-1.amazonaws.com", "tagging.eu-west-1.amazonaws.com", "elasticloadbalancing.eu-west-1.amazonaws.com",
		"api.pricing.us-east-1.amazonaws.com", "api.pricing.eu-central-1.amazonaws.com",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(r.ServiceNames()) {
		t.Errorf("a name is there twice: %v", names)
	}
}
