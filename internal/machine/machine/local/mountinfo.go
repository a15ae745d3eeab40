// SPDX-License-Identifier: Apache-2.0

package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mount is a line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	id, device  string
	root, point string // the directory of the file system, and where it is mounted
	writable    bool
}

func readMounts(pid string) ([]mount, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "mountinfo"))
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text)), nil
}

func parseMounts(mountinfo string) []mount {
	var all []mount
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		options := strings.Split(fields[5], ",")
		all = append(all, mount{fields[0], fields[2], unescape(fields[3]), unescape(fields[4]), slices.Contains(options, "rw")})
	}
	return all
}

// unescape undoes the octal escapes of white space and backslashes.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
