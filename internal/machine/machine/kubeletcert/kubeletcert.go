// SPDX-License-Identifier: Apache-2.0

package kubeletcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/platform/sparsedisk"
	"muster.dev/muster/internal/platform/statedir"
)

// The places below a machine's directory in which its kubelet keeps what it uses: a local machine's on its disk, as
// upstream's kubelet leaves them, and a simulated one's.
var kubeletFiles = []struct{ client, serving string }{
	{"root/var/lib/kubelet/pki/kubelet-client-current.pem", "root/var/lib/kubelet/pki/kubelet-server-current.pem"},
	{"kubelet/kubelet-client.pem", "kubelet/kubelet-server.pem"},
}

// Read returns the certificates that the kubelets of a cluster's machines use, from the machines' disks, each with the
// name of the authority that signed it. The record of issued certificates is not enough: a machine may not have fetched
// its certificate yet.
func Read(dir statedir.Dir, cluster string, authorities map[string]*x509.Certificate) ([]rotation.Node, error) {
	entries, err := os.ReadDir(dir.Machines())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading directory of machines: %w", err)
	}
	var nodes []rotation.Node
	for _, entry := range entries {
		if machine.ValidateID(entry.Name()) != nil {
			continue
		}
		path := dir.Machine(entry.Name())
		record, err := machine.ReadRecord(filepath.Join(path, machine.RecordFile))
		if errors.Is(err, fs.ErrNotExist) { // not complete yet, or being removed
			continue
		}
		if err != nil {
			return nil, err
		}
		if record.Cluster != cluster {
			continue
		}
		if err := readable(dir, record.ID); err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("opening the disk of machine %s: %w", record.ID, err)
		}
		node := rotation.Node{Name: record.PrivateDNSName}
		for _, files := range kubeletFiles {
			if node.Client == nil {
				node.Client = diskCertificate(root, files.client, authorities)
			}
			if node.Serving == nil {
				node.Serving = diskCertificate(root, files.serving, authorities)
			}
		}
		_ = root.Close() // it was only read
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// readable refuses to look for certificates on a disk that is not mounted, as after a reboot of the host: that there
// are none is not known before.
func readable(dir statedir.Dir, id string) error {
	if _, err := os.Lstat(dir.MachineDisk(id)); err != nil {
		return nil //nolint:nilerr // its disk is a directory
	}
	mounted, err := sparsedisk.Mounted(filepath.Join(dir.Machine(id), "root"))
	if err == nil && !mounted {
		err = fmt.Errorf("the disk of machine %s is not mounted before it boots again: wait for that, start the machine if it is stopped, or delete it", id)
	}
	return err
}

// diskCertificate reads one file of a machine. The machine may have put anything there, but it deceives only itself: it
// loses its way in when the authority goes that signed what it really uses. Nothing outside of its directory is ever
// opened, and a file that is not a certificate counts as none.
func diskCertificate(root *os.Root, name string, authorities map[string]*x509.Certificate) *rotation.Certificate {
	// The kubelet's link is absolute, as seen on the machine (client-go util/certificate/certificate_store.go).
	if target, err := root.Readlink(name); err == nil {
		name = filepath.Join(filepath.Dir(name), filepath.Base(target))
	}
	// Not blocking: it could be a pipe.
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	const most = 1 << 16
	raw, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil
	}
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		return &rotation.Certificate{Authority: signedBy(certificate, authorities), Ends: certificate.NotAfter}
	}
	return nil
}

// signedBy is the name of the authority that a certificate names, or nothing. Looking costs less than verifying a
// signature, and nobody is let in on it.
func signedBy(certificate *x509.Certificate, authorities map[string]*x509.Certificate) string {
	var names []string
	for name, ca := range authorities {
		if bytes.Equal(certificate.RawIssuer, ca.RawSubject) && bytes.Equal(certificate.AuthorityKeyId, ca.SubjectKeyId) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}
