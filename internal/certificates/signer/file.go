// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"errors"
	"fmt"
	"log/slog"
)

// FileConfig names the files of a certificate authority.
type FileConfig struct {
	CertFile string
	KeyFile  string // may be the same file
	Logger   *slog.Logger
}

// NewFile makes a CA with both in files.
func NewFile(c FileConfig) (*CA, error) {
	if c.KeyFile == "" {
		return nil, errors.New("a signer needs the file of its key")
	}
	key := watch(c.KeyFile, "private key", parseKey, c.Logger)
	ca, err := newCA(Config{Certificate: c.CertFile, Key: key.source, Logger: c.Logger})
	if err == nil {
		_, err = ca.with(key.get())
	}
	if err != nil {
		return nil, fmt.Errorf("loading the signing certificate %s with key %s: %w", c.CertFile, c.KeyFile, err)
	}
	return ca, nil
}
