// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Where the ledger is, and the directory that it is in.
const (
	dataDir    = "/var/lib/muster"
	LedgerPath = dataDir + "/join.json"
)

// The ledger's version, and bounds of what is read: a join has some thirty files.
const (
	ledgerVersion = 1
	maxLedger     = 1 << 20
	maxEntries    = 1000
)

// Ledger is what a join has made, or was about to make, of a host.
type Ledger struct {
	Version int `json:"version"`
	// Asked is where the command line said the cluster is, Endpoint the API server's URL, and Authorities what pins its
	// authorities, as sha256:<hex>: which cluster this is.
	Asked       string   `json:"asked,omitempty"`
	Endpoint    string   `json:"endpoint"`
	Authorities []string `json:"authorities"`
	NodeName    string   `json:"nodeName"`
	// NodeUID is known once the Node has registered. A Node of the same name with another UID is somebody else's.
	NodeUID string `json:"nodeUID,omitempty"`
	// TokenID is the public half of the bootstrap token.
	TokenID string    `json:"tokenID,omitempty"`
	Began   time.Time `json:"began"`
	Joined  time.Time `json:"joined,omitzero"`
	// OwnContainerd tells that containerd is this join's, and not one that was there.
	OwnContainerd bool `json:"ownContainerd,omitempty"`
	// SkipKubeProxy tells that the cluster runs kube-proxy itself, in a pod of a DaemonSet.
	SkipKubeProxy bool `json:"skipKubeProxy,omitempty"`
	// Unsettled tells that files were written which not every program may have been started with yet.
	Unsettled bool `json:"unsettled,omitempty"`
	// Cordoned tells that a leave began, and made the node unschedulable.
	Cordoned bool `json:"cordoned,omitempty"`
	// Drained tells that a leave has seen to the node's pods, so that it may go on when it has removed the certificate.
	Drained bool `json:"drained,omitempty"`

	// Directories that the join made, outer ones first. They are removed when they are empty.
	Directories []string `json:"directories,omitempty"`
	// Files and links that were not there.
	Files []string `json:"files,omitempty"`
	// Hashes of what the join wrote, by path: a file with another hash was put in its place by somebody else, and
	// stays. There are two while a file is about to be replaced.
	Hashes map[string][]string `json:"hashes,omitempty"`
	// Units that were not there.
	Units []string `json:"units,omitempty"`
	// Slices that did not run; they end when nothing else is in them.
	Slices []string `json:"slices,omitempty"`
	// Trees are directories that the node's programs fill.
	Trees []Tree `json:"trees,omitempty"`
	// Settings of the kernel as they were.
	Settings []Setting `json:"settings,omitempty"`
}

// Tree is a directory that the node's programs fill. A leave empties it, and removes it unless Keep is set: then the
// directory existed before, empty, or a disk was mounted on it.
type Tree struct {
	Path string `json:"path"`
	Keep bool   `json:"keep,omitempty"`
}

// Setting is a setting of the kernel, as it was before.
type Setting struct {
	Name   string `json:"name"`
	Before string `json:"before"`
}

// ErrNotJoined means that there is no ledger.
var ErrNotJoined = errors.New("this host has not joined a cluster by muster join")

// ReadLedger reads the ledger of a host whose files are below root.
func ReadLedger(root string) (Ledger, error) {
	path := filepath.Join(root, LedgerPath)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Ledger{}, ErrNotJoined
	case err != nil:
		return Ledger{}, fmt.Errorf("reading ledger: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0:
		return Ledger{}, fmt.Errorf("reading ledger: %s is not a file that only its owner can write; leave would remove whatever it says", LedgerPath)
	case info.Size() > maxLedger:
		return Ledger{}, fmt.Errorf("reading ledger: %s is %d bytes long; %d are allowed", LedgerPath, info.Size(), maxLedger)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return Ledger{}, fmt.Errorf("reading ledger: %w", err)
	}
	l, err := parseLedger(raw)
	if err != nil {
		return Ledger{}, fmt.Errorf("reading ledger %s: %w", LedgerPath, err)
	}
	return l, nil
}

func parseLedger(raw []byte) (Ledger, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return Ledger{}, err
	}
	if version.Version != ledgerVersion {
		return Ledger{}, fmt.Errorf("its version is %d and this muster knows %d: use the muster that joined", version.Version, ledgerVersion)
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.DisallowUnknownFields()
	var l Ledger
	if err := decoder.Decode(&l); err != nil {
		return Ledger{}, err
	}
	return l, l.check()
}

// check refuses paths that no join would list: leave removes what is listed.
func (l Ledger) check() error {
	paths := slices.Concat(l.Directories, l.Files)
	for _, tree := range l.Trees {
		paths = append(paths, tree.Path)
	}
	if len(paths) > maxEntries || len(l.Units) > maxEntries || len(l.Settings) > maxEntries {
		return fmt.Errorf("it lists more than %d things", maxEntries)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.Count(path, "/") < 2 || strings.ContainsRune(path, 0) {
			return fmt.Errorf("it lists %q, which no join makes", path)
		}
	}
	for _, tree := range l.Trees {
		if !slices.Contains(treePaths(), tree.Path) {
			return fmt.Errorf("it lists everything in %q, which is not a node's alone", tree.Path)
		}
	}
	if err := l.checkHashes(); err != nil {
		return err
	}
	for _, s := range l.Settings {
		if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || strings.Contains(s.Name, "..") || strings.HasPrefix(s.Name, ".") {
			return fmt.Errorf("it lists the setting %q, which is none", s.Name)
		}
	}
	return nil
}

// save writes the ledger, which is on the disk when it returns.
func (l Ledger) save(root string) error {
	l.Version = ledgerVersion
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("writing ledger: %w", err)
	}
	return atomicfile.Write(filepath.Join(root, LedgerPath), append(raw, '\n'), 0o600)
}

// lists reports whether a file is one that a join has made.
func (l Ledger) lists(path string) bool { return slices.Contains(l.Files, path) }

// add lists something once.
func add(list *[]string, things ...string) {
	for _, thing := range things {
		if !slices.Contains(*list, thing) {
			*list = append(*list, thing)
		}
	}
}

// PinsOf are the hashes of the public keys of all authorities in a bundle, as kubeadm writes them.
func PinsOf(bundle []byte) ([]string, error) {
	var pins []string
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading the cluster's authority: %w", err)
		}
		sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		add(&pins, "sha256:"+hex.EncodeToString(sum[:]))
	}
	if len(pins) == 0 {
		return nil, errors.New("reading the cluster's authority: there is no certificate")
	}
	slices.Sort(pins)
	return pins, nil
}

// sameCluster reports whether an authority is one of the ledger's: one of them at least is the same, since authorities
// are rotated by having both for a while.
func (l Ledger) sameCluster(pins []string) bool {
	return slices.ContainsFunc(pins, func(pin string) bool { return slices.Contains(l.Authorities, pin) })
}
