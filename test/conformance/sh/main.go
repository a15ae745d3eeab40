// SPDX-License-Identifier: Apache-2.0

// Sh is /bin/sh of the image that stands in for busybox. It becomes busybox's ash, whose messages some specs compare,
// unless the environment has names that are no identifiers, which others set and look for: Debian's ash drops those,
// and bash does not.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
)

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// shell is the program that passes this environment on.
func shell(environment []string) string {
	for _, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); !identifier.MatchString(name) {
			return "/bin/bash"
		}
	}
	return "/bin/busybox" // it goes by the name that it is called by
}

func main() {
	program := shell(os.Environ())
	err := syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // G702: its arguments are a shell's
	fmt.Fprintf(os.Stderr, "%s: %s: %v\n", os.Args[0], program, err)
	os.Exit(127)
}
