// SPDX-License-Identifier: Apache-2.0

package serviceunit

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"muster.dev/muster/internal/platform/statedir"
)

// Unit is the unit of an installation.
type Unit struct {
	// State is the directory of the installation.
	State statedir.Dir
	// Program is the absolute path of the muster that starts it.
	Program string
}

// longest is as much of a state directory's path as the name of its unit has.
const longest = 60

var unnamed = regexp.MustCompile(`[^a-zA-Z0-9_.]+`)

// Name is the name of the unit: the state directory for people, and a hash of it, since different paths may read the
// same.
func (u Unit) Name() string {
	readable := strings.Trim(unnamed.ReplaceAllString(string(u.State), "-"), "-")
	if len(readable) > longest {
		readable = readable[len(readable)-longest:]
	}
	return fmt.Sprintf("muster-%s-%s.service", readable, statedir.Hash(u.State)[:8])
}

// mark is the first line of a file that is this unit's.
func (u Unit) mark() string {
	return "# Written by muster service install for " + string(u.State) + "; changes to this file are lost.\n"
}

// template is the file. Nothing in it takes rights or a part of the host away: pods and machines would inherit that, and a
// mount namespace of the unit's own would hide the disks of machines from a muster that is run by hand.
const template = `
[Unit]
Description=Muster, installation in %[1]s
Wants=network-online.target
After=network-online.target local-fs.target time-sync.target
RequiresMountsFor=%[2]s %[3]s
StartLimitIntervalSec=0

[Service]
# It starts the service and ends. Processes of the installation stay in the control group, are supervised by Muster, and
# outlive a restart of the unit. It is tried again until the service answers.
Type=oneshot
RemainAfterExit=yes
ExecStart=%[4]s service start %[5]s
Restart=on-failure
RestartSec=5
TimeoutStartSec=300
KillMode=process
Delegate=yes
OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=1048576
IgnoreSIGPIPE=no

[Install]
WantedBy=multi-user.target
`

// Render returns the unit's file, or an error if a path cannot stand in one.
func (u Unit) Render() (string, error) {
	for what, path := range map[string]string{"--state-dir": string(u.State), "the program muster": u.Program} {
		if err := checkPath(path); err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
	}
	escaped := strings.ReplaceAll(string(u.State), "%", "%%")
	return u.mark() + fmt.Sprintf(template, escaped, quote(string(u.State)), quote(filepath.Dir(u.Program)), quote(u.Program), quote("--state-dir="+string(u.State))), nil
}

// checkPath refuses a path that systemd would read as another one, wherever in the file it stands.
func checkPath(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("%q is not an absolute path", path)
	}
	at := strings.IndexFunc(path, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) || strings.ContainsRune("\"'\\$*?[;", r)
	})
	if at >= 0 {
		return fmt.Errorf("a unit of systemd cannot have the path %q, because of what begins with %q: choose another directory", path, path[at:])
	}
	return nil
}

// quote writes a word as systemd reads it (systemd.syntax(7)); [checkPath] has let nothing through that needs more.
func quote(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if strings.Contains(word, " ") {
		return `"` + word + `"`
	}
	return word
}
