// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Config is what the machine cannot know by itself. Everything but the endpoint has a default.
type Config struct {
	// Endpoint is the URL of the API server.
	Endpoint string
	// NodeName is the name to register by, if it is not the machine's own.
	NodeName string
	// SwapAllowed tells that the kubelet is to run though the machine swaps (failSwapOn: false).
	SwapAllowed bool
	// BinDir is searched for programs before the PATH is.
	BinDir string
	// RuntimeSocket is the container runtime's, containerd's if empty.
	RuntimeSocket string
	// Ledger is what muster join remembers its works by.
	Ledger string
	// Root is put before the paths of units and of the ledger; it is empty but in tests.
	Root string
	// Timeout is how long the server and the container runtime may take to answer, each.
	Timeout time.Duration
}

const (
	defaultSocket  = "/run/containerd/containerd.sock"
	defaultLedger  = "/var/lib/muster/join.json"
	defaultTimeout = 10 * time.Second
)

// System answers for the machine that it runs on.
func System(config Config) Host {
	if config.RuntimeSocket == "" {
		config.RuntimeSocket = defaultSocket
	}
	if config.Ledger == "" {
		config.Ledger = defaultLedger
	}
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	return system{config}
}

type system struct{ config Config }

func (system) Root() (bool, error) { return host.AsRoot(), nil }

// Systemd looks for what sd_booted(3) does.
func (system) Systemd() (bool, error) { return exists("/run/systemd/system") }

// Hostname is the name given, or the machine's own as a kubelet spells it (pkg/util/node, GetHostname).
func (s system) Hostname() (string, error) {
	if s.config.NodeName != "" {
		return s.config.NodeName, nil
	}
	name, err := os.Hostname()
	return strings.ToLower(strings.TrimSpace(name)), err
}

func (system) Kernel() (string, error) { return host.Kernel() }

func (system) Cgroups() (Cgroups, error) {
	found, err := host.ReadCgroups()
	if err != nil {
		return Cgroups{}, err
	}
	if len(found.Hierarchies) == 0 {
		return Cgroups{}, errors.New("no control groups are mounted")
	}
	missing, err := found.Missing()
	return Cgroups{Version: found.Version(), Missing: missing}, err
}

// Swap reads proc_swaps(5): a header, and a line for each area. Without swap in the kernel there is no such file.
func (system) Swap() ([]string, error) {
	raw, err := os.ReadFile("/proc/swaps")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var areas []string
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if fields := strings.Fields(line); i > 0 && len(fields) > 0 {
			areas = append(areas, fields[0])
		}
	}
	return areas, nil
}

func (system) Setting(name string) (string, error) {
	raw, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
	return strings.TrimSpace(string(raw)), err
}

// Processes lists them by the name of their executable, which a process cannot choose as it can the name that is shown.
func (system) Processes(program string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if executable(pid) == program {
			found = append(found, pid)
		}
	}
	return found, nil
}

// executable is the name that a process was executed by. It is the argument's rather than the file's: muster's kubelet
// is a link to a program of many names.
func executable(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(raw), "\x00")
	return filepath.Base(name)
}

func (s system) Program(name string) (string, error) {
	if s.config.BinDir != "" {
		path := filepath.Join(s.config.BinDir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path, nil
		}
	}
	// Also where a user's PATH does not reach: the kubelet's will.
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin") {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, exec.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

func (s system) Existing() (Existing, error) {
	found := Existing{}
	for _, path := range []string{
		"/etc/kubernetes/bootstrap-kubelet.conf",
		"/etc/kubernetes/kubelet.conf",
		"/etc/kubernetes/kubelet/config.json",
		"/var/lib/kubelet/config.yaml",
		"/var/lib/kubelet/kubeconfig",
		"/var/lib/kubelet/pki/kubelet-client-current.pem",
	} {
		there, err := exists(path)
		if err != nil {
			return Existing{}, err
		}
		if there {
			found.Files = append(found.Files, path)
		}
	}
	var err error
	found.ByMuster, err = exists(s.config.Ledger)
	return found, err
}

// Space asks about the nearest directory that is there.
func (system) Space(dir string) (Space, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(dir, &stat)
		if errors.Is(err, fs.ErrNotExist) && dir != "/" {
			dir = filepath.Dir(dir)
			continue
		}
		if err != nil {
			return Space{}, fmt.Errorf("looking at %s: %w", dir, err)
		}
		block := uint64(stat.Bsize) //nolint:gosec // G115: the size of a block
		return Space{Free: stat.Bavail * block, Total: stat.Blocks * block, FreeInodes: stat.Ffree, TotalInodes: stat.Files}, nil
	}
}

// exists reports whether something is there; a link that leads nowhere is.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	return err == nil, err
}

// SwapAllowed is what the kubelet's configuration says.
func (s system) SwapAllowed() bool { return s.config.SwapAllowed }
