// SPDX-License-Identifier: Apache-2.0

package thishost

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/termsafe"
)

// ConfigError turns nodeconfig.Problems into one error with a line for each problem; other errors stay as they are.
func ConfigError(err error) error {
	problems, ok := errors.AsType[nodeconfig.Problems](err)
	if !ok {
		return err
	}
	text := strings.TrimSuffix(termsafe.Lines(strings.Join(problems, "\n")+"\n"), "\n")
	return fmt.Errorf("the NodeConfig has %s:\n  %s", terminal.Count(len(problems), "problem", "problems"), strings.ReplaceAll(text, "\n", "\n  "))
}

// Hardware is what the formulas for reserved resources and limits take of a machine.
type Hardware struct {
	CPUs          int
	MemoryBytes   int64
	PIDs          int64
	CgroupVersion int
	OpenFiles     uint64
	Hostname      string
}

// ReadHardware reads the hardware of the machine that this process runs on.
func ReadHardware() (Hardware, error) {
	memory, err := host.Memory()
	if err != nil {
		return Hardware{}, err
	}
	pids, err := host.PIDs()
	if err != nil {
		return Hardware{}, err
	}
	cgroups, err := host.ReadCgroups()
	if err != nil {
		return Hardware{}, err
	}
	name, err := os.Hostname()
	if err != nil {
		return Hardware{}, fmt.Errorf("reading this machine's name: %w", err)
	}
	files, err := host.OpenFiles()
	if err != nil {
		return Hardware{}, err
	}
	return Hardware{OpenFiles: files, CPUs: host.CPUs(), MemoryBytes: memory, PIDs: pids, CgroupVersion: cgroups.Version(), Hostname: strings.ToLower(name)}, nil
}

// KubeletCheck runs the kubelet's own validation by its program, of the default release of the programs in a directory;
// nil if it is not there.
func KubeletCheck(dir string) kubeletcheck.Run {
	program := release.Default().Program(dir, kubeletcheck.Program)
	if !terminal.Exists(program) {
		return nil
	}
	return kubeletcheck.Exec(program)
}
