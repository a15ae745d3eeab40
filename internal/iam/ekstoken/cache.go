// SPDX-License-Identifier: Apache-2.0

package ekstoken

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/platform/atomicfile"
)

// Cache keeps tokens in files of a directory: each is good for a quarter of an hour, and making the next may take an
// assumed role or a person with a second factor.
type Cache struct {
	// Dir is made with mode 0700.
	Dir string
	// Environ is the environment: a token made with other settings of AWS's is another.
	Environ []string
	// KeyID is the access key that the token is made with. A client that was refused asks for a token once more, and
	// nothing tells that from the first time: a user with a new key must not get a token of the old one.
	KeyID string
}

// DefaultCacheDir is below the directory that kubectl keeps its own cache in.
func DefaultCacheDir() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding your home directory for --cache: %w", err)
	}
	return filepath.Join(home, ".kube", "cache", "muster"), nil
}

// spare is what a token that is kept must have left: time to be used.
const spare = time.Minute

type cached struct {
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// Get is the token that is kept for a request. Whatever is wrong with what is kept is an error that need not stop
// anybody.
func (c Cache) Get(r Request, now time.Time) (Token, bool, error) {
	raw, err := readPrivate(c.path(r))
	if errors.Is(err, fs.ErrNotExist) {
		return Token{}, false, nil
	}
	if err != nil {
		return Token{}, false, fmt.Errorf("reading the token that is kept: %w", err)
	}
	var kept cached
	if err := json.Unmarshal(raw, &kept); err != nil || !strings.HasPrefix(kept.Token, ststoken.Prefix) {
		return Token{}, false, fmt.Errorf("%s does not hold a token", c.path(r))
	}
	if kept.Expires.Sub(now) < spare || kept.Expires.Sub(now) > lifetime {
		return Token{}, false, nil
	}
	return Token{text: kept.Token, Expires: kept.Expires}, true, nil
}

// Put keeps a token.
func (c Cache) Put(r Request, t Token) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of the token cache: %w", err)
	}
	raw, err := json.Marshal(cached{t.Reveal(), t.Expires})
	if err != nil {
		return fmt.Errorf("encoding the token for the cache: %w", err)
	}
	return atomicfile.Replace(c.path(r), raw, 0o600)
}

// path names the file of a request by all that its token depends on.
func (c Cache) path(r Request) string {
	var environ []string
	for _, variable := range c.Environ {
		if strings.HasPrefix(variable, "AWS_") || strings.HasPrefix(variable, "HOME=") {
			environ = append(environ, variable)
		}
	}
	slices.Sort(environ)
	parts := []string{c.KeyID, r.Cluster, r.Region, r.RoleARN, r.SessionName, r.ExternalID, fmt.Sprint(r.ForwardSessionName)}
	if r.Files != nil {
		parts = append(parts, r.Files.Config, r.Files.Credentials)
	}
	sum := sha256.New()
	for _, part := range append(parts, environ...) {
		_, _ = fmt.Fprintf(sum, "%d:%s,", len(part), part) // a hash takes everything
	}
	return filepath.Join(c.Dir, hex.EncodeToString(sum.Sum(nil)[:16])+".json")
}

// readPrivate reads a small file that nobody else can have written or read.
func readPrivate(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || int64(owner.Uid) != int64(os.Geteuid()) {
		return nil, fmt.Errorf("%s is open to others (%v): remove it", path, info.Mode())
	}
	const most = 16 << 10
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(raw) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return raw, err
}
