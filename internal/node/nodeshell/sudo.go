// SPDX-License-Identifier: Apache-2.0

package nodeshell

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// RaiseDir is a file system of the machine's own in memory, which the group wheel alone may enter.
	RaiseDir = "/run/wheel"
	// Raise is a copy of setpriv(1) there, with the rights of the machine's root.
	Raise = RaiseDir + "/setpriv"
	// RaiseSource is what is copied.
	RaiseSource = "/usr/bin/setpriv"
	// WheelID is the number of the group wheel, as on Amazon Linux.
	WheelID = 10
)

// secure is where commands are looked for as root.
const secure = "/run/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/muster/bin"

// SudoCommand is what a command line of sudo(8) asks for: a program, its arguments and its environment. The user is root in every case.
func SudoCommand(args, environment []string) (argv, env []string, err error) {
	env = []string{"PATH=" + secure, "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "AWS_CONFIG_FILE=/etc/aws/config"}
	for _, variable := range environment {
		switch name, value, _ := strings.Cut(variable, "="); name {
		case "TERM", "COLORTERM", "LANG", "LC_ALL", "LC_CTYPE":
			env = append(env, variable)
		case "USER":
			env = append(env, "SUDO_USER="+value)
		}
	}
	shell := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option := args[0]
		args = args[1:]
		switch {
		case option == "--":
			return withShell(args, env, shell)
		case option == "-n" || option == "-H":
		case option == "-i" || option == "-s":
			shell = true
		case option == "-u" && len(args) > 0 && (args[0] == "root" || args[0] == "#0"):
			args = args[1:]
		default:
			return nil, nil, fmt.Errorf("option %.64q cannot be had: sudo of a machine takes -n, -H, -i, -s and -u root", option)
		}
	}
	for len(args) > 0 {
		name, _, ok := strings.Cut(args[0], "=")
		if !ok || name == "" || strings.ContainsAny(name, "/ ") {
			break
		}
		env, args = append(env, args[0]), args[1:]
	}
	return withShell(args, env, shell)
}

func withShell(args, env []string, shell bool) (argv, environment []string, err error) {
	switch {
	case shell && len(args) == 0:
		args = []string{"/bin/bash", "-l"}
	case len(args) == 0:
		return nil, nil, errors.New("a command is missing: sudo COMMAND [ARG...], sudo -i for a shell")
	}
	return append([]string{Sudo, "--reuid=0", "--regid=0", "--clear-groups", "--"}, args...), env, nil
}
