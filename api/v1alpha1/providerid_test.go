// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestProviderID(t *testing.T) {
	if got := v1alpha1.ProviderID("us-east-1a", "i-0123456789abcdef0"); got != "aws:///us-east-1a/i-0123456789abcdef0" {
		t.Errorf("the provider id is %s", got)
	}
	for id, want := range map[string]string{
		"aws:///us-east-1a/i-0123456789abcdef0":    "i-0123456789abcdef0",
		"aws:///eu-west-1c/i-0123456789abcdef0":    "i-0123456789abcdef0",
		"":                                         "",
		"aws:///i-0123456789abcdef0":               "",
		"aws:////i-0123456789abcdef0":              "",
		"aws:///us-east-1a/":                       "",
		"aws:///us-east-1a/x/i-0123456789abcdef0":  "",
		"aws:///us-east-1a/i-0123456789abcdef0/":   "",
		"aws://us-east-1a/i-0123456789abcdef0":     "",
		"muster:///i-0123456789abcdef0":            "",
		"muster:///us-east-1a/i-0123456789abcdef0": "",
	} {
		if got, ok := v1alpha1.MachineOfProviderID(id); got != want || ok != (want != "") {
			t.Errorf("the machine of %q is %q, %t; want %q", id, got, ok, want)
		}
	}
}
