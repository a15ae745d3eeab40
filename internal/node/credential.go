// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/nodecerts"
	"muster.dev/muster/internal/render"
)

// credential is what a kubelet proves itself by, as it lies on the disk.
type credential struct{ dir, kubeconfig string }

func machineCredential() credential {
	return credential{dir: nodecerts.DefaultDir, kubeconfig: render.PathKubeconfig}
}

// nodeName is how a kubelet spells the name that it is given (pkg/util/node, GetHostname).
func nodeName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// joined tells whether the kubelet has a certificate of this very node that is still good, so that it needs no token, or joins by its
// machine's role.
func (c credential) joined(node string, now time.Time) bool {
	raw, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		return false
	}
	if render.JoinsByRole(raw) {
		return true
	}
	client := nodecerts.Read(c.dir, now)[0]
	usable := !client.Has(nodecerts.Missing) && !client.Has(nodecerts.Unreadable) && !client.Has(nodecerts.KeyMismatch) && !client.Has(nodecerts.Expired)
	return usable && client.NodeName() == nodeName(node)
}

// anothers is the node that the certificate on the disk was issued to, if that is not this one: the disk was copied from that machine,
// or this one was given another name. With its certificate this machine would pass for that node.
func (c credential) anothers(node string, now time.Time) (string, bool) {
	client := nodecerts.Read(c.dir, now)[0]
	if node == "" || client.Has(nodecerts.Missing) || client.Has(nodecerts.Unreadable) || client.NodeName() == nodeName(node) {
		return "", false
	}
	return client.CommonName, true
}

// disown removes another node's keys and certificates. It has them itself; what is here is a copy.
func (c credential) disown() error {
	doomed, err := filepath.Glob(filepath.Join(c.dir, "kubelet-*.pem"))
	if err != nil {
		return fmt.Errorf("looking for another node's certificates: %w", err)
	}
	for _, path := range append(doomed, c.kubeconfig) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing another node's certificates: %w", err)
		}
	}
	return nil
}

// ownCredential sees to it that a machine has no credential but its own, and tells whether it has that. Say is told of another's.
func (c credential) ownCredential(node string, now time.Time, say func(string)) (joined bool, err error) {
	if whose, ok := c.anothers(node, now); ok {
		say(fmt.Sprintf("the certificate on this disk is that of %s, and this machine is node %s: its disk is a copy, or it was given another name; that certificate is removed, and the machine joins by its own credential", whose, node))
		if err := c.disown(); err != nil {
			return false, err
		}
	}
	return c.joined(node, now), nil
}
