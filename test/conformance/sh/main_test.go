// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestShell(t *testing.T) {
	for variable, want := range map[string]string{
		"PATH=/bin":      "/bin/busybox",
		"_x1=a b=c-d":    "/bin/busybox",
		"EMPTY=":         "/bin/busybox",
		"p-data-1=value": "/bin/bash",
		"data.1=value":   "/bin/bash",
		"1st=value":      "/bin/bash",
		"!\"#$%&'()=x":   "/bin/bash",
	} {
		if got := shell([]string{"HOME=/", variable, "LAST=1"}); got != want {
			t.Errorf("with %s it is %s, want %s", variable, got, want)
		}
	}
}
