// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/certificate"
	"k8s.io/klog/v2"

	"muster.dev/muster/internal/platform/atomicfile"
)

// stamp is how upstream's store dates its files, in local time (client-go, util/certificate/certificate_store.go,
// Update).
const stamp = "2006-01-02-15-04-05"

// encode is a pair as upstream's store writes it: certificates, then the key.
func encode(chain []*x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, errors.New("the new key cannot be written")
	}
	var out bytes.Buffer
	for _, c := range chain {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer takes everything
	}
	_ = pem.Encode(&out, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return out.Bytes(), nil
}

// installer puts pairs into a kubelet's directory.
type installer struct {
	dir string
	now func() time.Time
	// step is told what is about to be done. Tests end the process there.
	step func(string)
}

// install writes a pair to a dated file and makes it the current one. The file and its link are those of upstream's
// store, but the link is replaced in one step: the store removes the old one first, and a process that is killed then
// leaves a kubelet that cannot start, since it reads its kubeconfig, which names the link, before it looks for what the
// store left behind.
func (i installer) install(kind Kind, pair []byte) (string, error) {
	path, err := i.free(kind)
	if err != nil {
		return "", err
	}
	i.step("write")
	if err := atomicfile.Write(path, pair, 0o600); err != nil {
		return "", err
	}
	i.step("remove")
	updated := filepath.Join(i.dir, kind.updated())
	if err := os.Remove(updated); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("removing what an interrupted rotation left: %w", err)
	}
	i.step("link")
	if err := os.Symlink(path, updated); err != nil {
		return "", fmt.Errorf("linking the new certificate: %w", err)
	}
	i.step("rename")
	if err := os.Rename(updated, filepath.Join(i.dir, kind.link())); err != nil {
		return "", fmt.Errorf("making the new certificate the current one: %w", err)
	}
	i.step("done")
	return path, nil
}

// replaceable reports whether the current pair is behind a link. A file there would be lost.
func replaceable(dir string, kind Kind) error {
	path := filepath.Join(dir, kind.link())
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("%s is a file and not a link: the kubelet could not rotate it either; `muster node certs` shows what to do", path)
	}
	return nil
}

// free is the path of a dated file that does not exist. The kubelet itself may have written one in this second.
func (i installer) free(kind Kind) (string, error) {
	dir, err := filepath.Abs(i.dir)
	if err != nil {
		return "", fmt.Errorf("naming the new certificate: %w", err)
	}
	for at := i.now(); ; at = at.Add(time.Second) {
		path := filepath.Join(dir, kind.prefix()+"-"+at.Format(stamp)+".pem")
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		} else if err != nil {
			return "", fmt.Errorf("naming the new certificate: %w", err)
		}
	}
}

// settleTime is far longer than a kubelet needs between removing a link and renaming the next one.
const settleTime = time.Second

// Recover puts the links back that an interrupted rotation of the kubelet's own left half replaced. The kubelet does
// so, too, but only after it has read its kubeconfig, which fails without the link; so it needs somebody else to do it.
func Recover(ctx context.Context, dir string) (recovered []Kind, err error) {
	for _, kind := range Kinds() {
		if !interrupted(dir, kind) {
			continue
		}
		select { // the kubelet may be at it right now
		case <-time.After(settleTime):
		case <-ctx.Done():
			return recovered, nil
		}
		if !interrupted(dir, kind) {
			continue
		}
		// Upstream's own code, which recovers when it is made.
		if _, err := certificate.NewFileStoreWithLogger(klog.Logger{}, kind.prefix(), dir, dir, "", ""); err != nil {
			return recovered, fmt.Errorf("recovering the %s certificate: %w", kind, err)
		}
		recovered = append(recovered, kind)
	}
	return recovered, nil
}

// interrupted reports whether there is a next link and no current one.
func interrupted(dir string, kind Kind) bool {
	return !exists(filepath.Join(dir, kind.link())) && exists(filepath.Join(dir, kind.updated()))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
