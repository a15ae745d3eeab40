// SPDX-License-Identifier: Apache-2.0

package portplan

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/statedir"
)

// claims are the ports that this process has for itself among all Musters of its user on the host, also while nothing
// listens on them yet. A claim is a locked file in a directory that nobody else can enter, so no other user can hold
// one; Musters of other users are seen by what listens. The kernel releases a lock when the process ends.
type claims struct {
	dir     string
	network string // namespace that the ports are of
	address string // that they are of
	holder  string // this process, for others
	held    map[int]func()
}

func newClaims(address string, state statedir.Dir) *claims {
	return &claims{
		dir: claimsDir(), network: network(), address: address, held: map[int]func(){},
		holder: fmt.Sprintf("the Muster in %s (process %d)", state, os.Getpid()),
	}
}

// claimsDir is root's directory of locks, and for another user one that only this user can enter.
func claimsDir() string {
	if host.AsRoot() {
		return filelock.Dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, filepath.Base(filelock.Dir))
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s-%d", filepath.Base(filelock.Dir), os.Geteuid()))
}

// network names this process's network namespace: in another one the same port is another port.
func network() string {
	link, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return "unknown"
	}
	return strings.Trim(strings.TrimPrefix(link, "net:"), "[]")
}

func (c *claims) name(port int) string {
	return fmt.Sprintf("port-%s-%s", c.network, net.JoinHostPort(c.address, strconv.Itoa(port)))
}

// take claims a port, or says why it is not this process's.
func (c *claims) take(port int) error {
	if c.held[port] != nil {
		return nil
	}
	release, err := filelock.TakeAs(c.dir, c.name(port), c.holder)
	if errors.Is(err, filelock.ErrTaken) {
		holder := filelock.Holder(c.dir, c.name(port))
		if holder == "" {
			holder = "another Muster"
		}
		return fmt.Errorf("%s has claimed it", holder)
	}
	if err != nil {
		return fmt.Errorf("it cannot be claimed: %w", err)
	}
	c.held[port] = release
	return nil
}

// keep gives back all claims but those to some ports, and claims these as far as nobody else has.
func (c *claims) keep(ports map[int]bool) {
	for port, release := range c.held {
		if !ports[port] {
			release()
			delete(c.held, port)
		}
	}
	for port := range ports {
		_ = c.take(port) // whoever has it is in the way when its plane starts, and told then
	}
}
