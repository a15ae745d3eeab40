// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/node/nodecerts"
	"muster.dev/muster/internal/node/render"
)

// credential is what a kubelet proves itself by, as it lies on the disk.
type credential struct{ dir, kubeconfig string }

func machineCredential() credential {
	return credential{dir: nodecerts.DefaultDir, kubeconfig: render.PathKubeconfig}
}

// nodeName is how a kubelet spells the name that it is given (pkg/util/node, GetHostname).
func nodeName(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// joined reports whether the kubelet has a certificate of this very node that is still good, so that it needs no token,
// or joins by its machine's role.
func (c credential) joined(node string, now time.Time) bool {
	if _, err := os.Stat(c.kubeconfig); err != nil {
		return false
	}
	if c.byRole() {
		return true
	}
	client := nodecerts.Read(c.dir, now)[0]
	return usable(client) && client.NodeName() == nodeName(node)
}

// byRole reports whether the kubelet proves itself by its machine's role.
func (c credential) byRole() bool {
	raw, err := os.ReadFile(c.kubeconfig)
	return err == nil && render.JoinsByRole(raw)
}

// usable reports whether a kubelet can show a certificate to the API server.
func usable(client nodecerts.Report) bool {
	return !client.Has(nodecerts.Missing) && !client.Has(nodecerts.Unreadable) && !client.Has(nodecerts.KeyMismatch) && !client.Has(nodecerts.Expired)
}

// anothers is the node that the certificate on the disk was issued to, if that is not this one: the disk was copied
// from that machine, or this one was given another name. With its certificate this machine would pass for that node.
func (c credential) anothers(node string, now time.Time) (string, bool) {
	client := nodecerts.Read(c.dir, now)[0]
	if node == "" || client.Has(nodecerts.Missing) || client.Has(nodecerts.Unreadable) || client.NodeName() == nodeName(node) {
		return "", false
	}
	return client.CommonName, true
}

// aside is where a node's keys and certificates are while the machine is another node, and has none of its own yet:
// should that be a mistake, such as of a drop-in, it is put right by correcting the mistake. Nothing else would let the
// machine in again.
func (c credential) aside(node string) string {
	return fmt.Sprintf("%s.aside-%x", c.dir, sha256.Sum256([]byte(nodeName(node))))
}

// setAside takes the present keys and certificates out of the kubelet's sight, in one step.
func (c credential) setAside(node string) error {
	to := c.aside(node)
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("setting another node's certificates aside: %w", err)
	}
	if err := os.Rename(c.dir, to); err != nil {
		return fmt.Errorf("setting another node's certificates aside: %w", err)
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fmt.Errorf("setting another node's certificates aside: %w", err)
	}
	if err := os.Rename(c.kubeconfig, filepath.Join(to, "kubeconfig")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("setting another node's certificates aside: %w", err)
	}
	return nil
}

// bringBack makes what was set aside of this node the present one again, and reports whether there was any.
func (c credential) bringBack(node string) (bool, error) {
	from := c.aside(node)
	if !exists(from) {
		return false, nil
	}
	if err := os.Rename(filepath.Join(from, "kubeconfig"), c.kubeconfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("bringing this node's certificates back: %w", err)
	}
	if err := os.RemoveAll(c.dir); err != nil { // at most the key of an attempt to join as another node
		return false, fmt.Errorf("bringing this node's certificates back: %w", err)
	}
	if err := os.Rename(from, c.dir); err != nil {
		return false, fmt.Errorf("bringing this node's certificates back: %w", err)
	}
	return true, nil
}

// forgetOthers removes what was set aside, when the machine has a credential of its own: with those keys it would pass
// for another node.
func (c credential) forgetOthers() error {
	others, err := filepath.Glob(c.dir + ".aside-*")
	if err != nil {
		return fmt.Errorf("removing another node's certificates: %w", err)
	}
	for _, other := range others {
		if err := os.RemoveAll(other); err != nil {
			return fmt.Errorf("removing another node's certificates: %w", err)
		}
	}
	return nil
}

// regain brings back this node's own credential if that was set aside, and reports whether the machine has one. Say is
// told.
func (c credential) regain(node string, now time.Time, say func(string)) (joined bool, err error) {
	if nodecerts.Read(c.dir, now)[0].Has(nodecerts.Missing) {
		found, err := c.bringBack(node)
		if err != nil {
			return false, err
		}
		if found {
			say(fmt.Sprintf("this machine is node %s again, and has its certificate back, which had been set aside", node))
		}
	}
	return c.joined(node, now), nil
}

// disown sees to it that a machine has no credential but its own. Say is told of another's. It is for when all that the
// machine is told has been judged: there may be nothing else to join by.
func (c credential) disown(node string, now time.Time, say func(string)) error {
	whose, ok := c.anothers(node, now)
	if !ok {
		return nil
	}
	say(fmt.Sprintf("the certificate on this disk is that of %s, and this machine is node %s: its disk is a copy, or it was given another name; that certificate is set aside until the machine has one of its own, and it joins by its own credential", whose, node))
	return c.setAside(nodecerts.Read(c.dir, now)[0].NodeName())
}
