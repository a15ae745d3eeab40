// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"

	"muster.dev/muster/internal/pki"
)

// FileConfig tells where a certificate authority's files are.
type FileConfig struct {
	CertFile string
	KeyFile  string // may be the same file
	Logger   *slog.Logger
}

// File signs with a key in a file. It looks at the files before each use, which costs two stat calls and misses nothing, not
// an atomic replacement, not a symlink that is pointed elsewhere. While certificate and key do not fit, as between the two
// writes of a replacement, the old pair goes on.
type File struct {
	config FileConfig

	mu      sync.Mutex
	current *pair
	seen    [2]fingerprint // of what was read last, also in vain
}

var _ Signer = (*File)(nil)

// fingerprint changes when a file does: ctime cannot be set back by anybody.
type fingerprint struct {
	device, inode uint64
	size          int64
	ctime, mtime  syscall.Timespec
}

// NewFile reads the files once and refuses what cannot sign.
func NewFile(c FileConfig) (*File, error) {
	switch {
	case c.CertFile == "" || c.KeyFile == "":
		return nil, errors.New("a signer needs the file of its certificate and the file of its key")
	case c.Logger == nil:
		return nil, errors.New("a signer needs a logger")
	}
	f := &File{config: c}
	var err error
	if f.seen, err = f.look(); err != nil {
		return nil, fmt.Errorf("loading the signing certificate: %w", err)
	}
	if f.current, err = f.load(); err != nil {
		return nil, fmt.Errorf("loading the signing certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return f, nil
}

// Issuer returns the certificate that signs now.
func (f *File) Issuer(context.Context) (*x509.Certificate, error) {
	return f.pair().certificate, nil
}

// Sign signs with the key that belongs to Issuer.
func (f *File) Sign(_ context.Context, p pki.Prepared) ([]byte, error) {
	now := f.pair()
	return p.Sign(rand.Reader, now.certificate, now.key)
}

// pair returns the pair on disk if it changed and fits, the old one otherwise.
func (f *File) pair() *pair {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen, err := f.look()
	if err != nil || seen == f.seen {
		return f.current // a file that is missing for a moment is being replaced
	}
	f.seen = seen
	next, err := f.load()
	if err != nil {
		f.config.Logger.Warn("signing certificate not reloaded, the old one goes on",
			"certificate", f.config.CertFile, "key", f.config.KeyFile, "error", err)
		return f.current
	}
	if !next.certificate.Equal(f.current.certificate) {
		f.config.Logger.Info("signing certificate reloaded", "certificate", f.config.CertFile,
			"subject", next.certificate.Subject.String(), "expires", next.certificate.NotAfter)
	}
	f.current = next
	return next
}

func (f *File) look() (prints [2]fingerprint, err error) {
	for i, name := range []string{f.config.CertFile, f.config.KeyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return prints, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return prints, fmt.Errorf("the file system says nothing about %s", name)
		}
		prints[i] = fingerprint{st.Dev, st.Ino, st.Size, st.Ctim, st.Mtim}
	}
	return prints, nil
}

const maxFile = 1 << 20

func (f *File) load() (*pair, error) {
	cert, err := read(f.config.CertFile)
	if err != nil {
		return nil, err
	}
	key, err := read(f.config.KeyFile)
	if err != nil {
		return nil, err
	}
	return parsePair(cert, key)
}

func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(file, maxFile))
}
