// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"
)

func TestNameOfIAMAuthenticator(t *testing.T) {
	for name, want := range map[string]bool{
		"/usr/bin/aws-iam-authenticator": true, "aws-iam-authenticator": true, "/etc/eks/aws-iam-authenticator": true,
		"muster": false, "/usr/bin/muster": false, "aws-iam-authenticator.exe": false, "": false,
	} {
		if got := CalledIAMAuthenticator(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestEnvironmentHasIdentity(t *testing.T) {
	for variable, want := range map[string]bool{
		"AWS_ACCESS_KEY_ID=a": true, "AWS_PROFILE=a": true, "AWS_CONFIG_FILE=/a": true,
		"AWS_PROFILE=": false, "AWS_REGION=a": false, "XAWS_PROFILE=a": false, "AWS_PROFILES=a": false,
	} {
		if got := environmentHasIdentity([]string{"TERM=x", variable}); got != want {
			t.Errorf("%s: %v", variable, got)
		}
	}
}
