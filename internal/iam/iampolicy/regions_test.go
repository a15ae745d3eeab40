// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"errors"
	"testing"

	"muster.dev/muster/internal/iam/iampolicy"
)

func TestResourcesOfIAMNameNoRegion(t *testing.T) {
	for resource, path := range map[string]string{
		"*": "", "arn:aws:iam::111122223333:role/a": "", "arn:aws:iam:*:111122223333:role/a": "", "arn:aws:eks:eu-west-1:111122223333:cluster/a": "",
		"arn:aws:iam:us-east-1:111122223333:role/a": "$.Statement[0].",
	} {
		for _, element := range []string{"Resource", "NotResource"} {
			d := parse(t, iampolicy.Managed, statement(`"Effect":"Deny","Action":"*","`+element+`":"`+resource+`"`)) // a stored document is read
			err := d.CheckRegions()
			malformed := (*iampolicy.Malformed)(nil)
			if path == "" && err != nil || path != "" && (!errors.As(err, &malformed) || malformed.Path != path+element) {
				t.Errorf("%s %s: %v", element, resource, err)
			}
		}
	}
}
