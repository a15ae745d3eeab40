// SPDX-License-Identifier: Apache-2.0

package nodeshell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names are those by which the programs are called.
const (
	Systemctl  = "systemctl"
	Journalctl = "journalctl"
	Sudo       = "sudo"
)

// units are the programs that the agent of a machine starts.
func units() []string { return []string{"containerd", "kubelet", "kube-proxy", "sshd"} }

// unitOf is the unit that goes by a name, with or without its ending.
func unitOf(name string) (string, error) {
	unit := strings.TrimSuffix(name, ".service")
	if !slices.Contains(units(), unit) {
		return "", fmt.Errorf("unit %.64q not found: a machine has %s", name, strings.Join(units(), ", "))
	}
	return unit, nil
}

// System is where the programs look: below a root directory, which is "/" on a machine.
type System struct {
	Root string
	Out  io.Writer
}

// inactive is the exit status of systemctl is-active for what does not run.
const inactive = 3

// RunSystemctl carries out a command line of systemctl(1), and returns the exit status.
func (s System) RunSystemctl(args []string) (int, error) {
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--no-pager" || arg == "--full" || arg == "-l" })
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return 1, errors.New("this machine has no systemd: systemctl cat UNIT shows a unit, systemctl is-active UNIT whether it runs")
	}
	verb, names := args[0], args[1:]
	if verb != "cat" && verb != "is-active" {
		return 1, fmt.Errorf("%.64q cannot be had: this machine has no systemd, and its agent starts the programs again whenever they end. systemctl cat UNIT shows a unit, journalctl -u UNIT its log", verb)
	}
	if len(names) == 0 {
		return 1, fmt.Errorf("a unit is missing: systemctl %s UNIT", verb)
	}
	status := 0
	for i, name := range names {
		unit, err := unitOf(name)
		if err != nil {
			return 1, err
		}
		if verb == "is-active" {
			state := "active"
			if !s.runs(unit) {
				state, status = "inactive", inactive
			}
			fmt.Fprintln(s.Out, state)
			continue
		}
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		if err := s.cat(unit); err != nil {
			return 1, err
		}
	}
	return status, nil
}

// unitDir has the files of units.
const unitDir = "/etc/systemd/system"

// cat prints the files of a unit, each below its path, as systemd does.
func (s System) cat(unit string) error {
	path := filepath.Join(unitDir, unit+".service")
	paths := []string{path}
	dropIns, err := filepath.Glob(filepath.Join(s.Root, path+".d", "*.conf"))
	if err != nil {
		return fmt.Errorf("listing %s.d: %w", path, err)
	}
	for _, one := range dropIns {
		paths = append(paths, filepath.Join("/", strings.TrimPrefix(one, s.Root)))
	}
	for i, path := range paths {
		content, err := os.ReadFile(filepath.Join(s.Root, path))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is not there yet: the machine's agent writes it while the machine boots", path)
		}
		if err != nil {
			return fmt.Errorf("reading a unit: %w", err)
		}
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		fmt.Fprintf(s.Out, "# %s\n%s", path, content)
	}
	return nil
}

// runs reports whether a program of a unit runs.
func (s System) runs(unit string) bool {
	all, _ := filepath.Glob(filepath.Join(s.Root, "/proc/[0-9]*/comm"))
	return slices.ContainsFunc(all, func(path string) bool {
		comm, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(comm)) == unit
	})
}
