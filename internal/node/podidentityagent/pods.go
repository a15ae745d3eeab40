// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// DefaultResults is where containerd's CNI library keeps what it made for each pod (github.com/containernetworking/cni,
// libcni: the cache of results).
const DefaultResults = "/var/lib/cni/results"

const (
	// maxResult bounds one file, which has the annotations of its pod, too; maxResults is how many are read: a machine
	// has some hundred pods at most.
	maxResult  = 4 << 20
	maxResults = 4096
	// settled is how old a change of the directory must be for its time to tell it from the next: the clock of files
	// goes by ticks of the kernel.
	settled = 20 * time.Millisecond
	// damagedAgain is the pause between two readings while there is a file that cannot be read: it may be one that is
	// just being written, which changes the directory before it is whole, and not after.
	damagedAgain = 100 * time.Millisecond
)

// Addresses knows which pod has an address, by the results that are kept of pods' networks. A result is written before
// a pod's first container starts, and removed when its network is.
type Addresses struct {
	dir string

	mu      sync.Mutex
	changed time.Time // of the directory, when it was read
	sure    bool      // that no change has the same time
	damaged bool      // there was a file that could not be read
	read    time.Time
	pods    map[netip.Addr]string
}

// NewAddresses reads the results in a directory.
func NewAddresses(dir string) *Addresses { return &Addresses{dir: dir} }

// Pod returns the UID of the pod that has an address; empty if none has.
func (a *Addresses) Pod(address netip.Addr) (string, error) {
	info, err := os.Stat(a.dir)         //nolint:gosec // G703: the directory is fixed on a machine
	if errors.Is(err, fs.ErrNotExist) { // there has been no pod yet
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking at the addresses of pods: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.sure || !info.ModTime().Equal(a.changed) || a.damaged && time.Since(a.read) > damagedAgain {
		now := time.Now()
		if a.pods, a.damaged, err = readResults(a.dir); err != nil {
			a.sure = false
			return "", err
		}
		a.changed, a.sure, a.read = info.ModTime(), now.Sub(info.ModTime()) > settled, now
	}
	return a.pods[address.Unmap()], nil
}

func readResults(dir string) (pods map[netip.Addr]string, damaged bool, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, false, fmt.Errorf("reading the addresses of pods: %w", err)
	}
	if len(entries) > maxResults {
		return nil, false, fmt.Errorf("%s has %d files: %d are read", dir, len(entries), maxResults)
	}
	pods = map[netip.Addr]string{}
	for _, entry := range entries {
		raw, err := readBounded(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // removed meanwhile, or not a file: nobody has an address by it
		}
		uid, addresses, err := readResult(raw)
		if err != nil {
			damaged = true
			continue
		}
		if uid == "" {
			continue
		}
		for _, address := range addresses {
			if before, twice := pods[address]; twice && before != uid {
				uid = "" // a result of the two is stale, and nobody knows which
			}
			pods[address] = uid
		}
	}
	return pods, damaged, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Lstat(path) //nolint:gosec // G703: the name is of an entry of that directory
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxResult {
		return nil, errors.New("not a result")
	}
	return os.ReadFile(path) //nolint:gosec // G703: as above
}

// readResult reads whose network a file is of, and its addresses.
func readResult(raw []byte) (uid string, addresses []netip.Addr, err error) {
	var kept struct {
		Kind   string      `json:"kind"`
		Args   [][2]string `json:"cniArgs"`
		Result struct {
			IPs []struct {
				Address string `json:"address"`
			} `json:"ips"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &kept); err != nil {
		return "", nil, fmt.Errorf("reading the result of a network: %w", err)
	}
	for _, arg := range kept.Args {
		if arg[0] == "K8S_POD_UID" {
			uid = arg[1]
		}
	}
	for _, ip := range kept.Result.IPs {
		text, _, _ := strings.Cut(ip.Address, "/")
		address, err := netip.ParseAddr(text)
		if err != nil {
			return "", nil, fmt.Errorf("reading the result of a network: %w", err)
		}
		if !address.IsLoopback() {
			addresses = append(addresses, address.Unmap())
		}
	}
	return uid, addresses, nil
}
