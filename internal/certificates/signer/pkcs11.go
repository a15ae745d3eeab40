// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"
)

// PKCS11Config locates a key in a token.
type PKCS11Config struct {
	// Program that talks to the token; muster-pkcs11 if empty. Without a slash it is looked for beside this one, then
	// in PATH.
	Program string
	// Module is the library that the token's vendor provides.
	Module string
	// Token is the token's label.
	Token string
	// KeyLabel and KeyID, in hexadecimal, select the key; at least one of the two must be set.
	KeyLabel, KeyID string
	// PINFile holds the PIN. It is read by the program, and by nobody else.
	PINFile string
	// Sessions are the most signatures at once; 16 if 0.
	Sessions int
	// Timeout is for a token that gives no answer at all while it is asked; 10 s if 0.
	Timeout time.Duration
	Logger  *slog.Logger
}

func (c *PKCS11Config) complete() error {
	switch {
	case c.Module == "" || c.Token == "" || c.PINFile == "":
		return errors.New("a key in a token needs the vendor's module, the token's label and the file of its PIN")
	case c.KeyLabel == "" && c.KeyID == "":
		return errors.New("a key in a token needs its label or its ID")
	case !filepath.IsAbs(c.Module):
		return errors.New("a key in a token needs the absolute path of the vendor's module")
	case c.Sessions < 0 || c.Sessions > 1024 || c.Timeout < 0:
		return errors.New("a key in a token needs 1 to 1024 sessions and a positive timeout")
	case c.Logger == nil:
		return errors.New("a key in a token needs a logger")
	}
	if c.Sessions == 0 {
		c.Sessions = 16
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if _, err := hex.DecodeString(c.KeyID); err != nil {
		return fmt.Errorf("a key in a token needs its ID in hexadecimal: %w", err)
	}
	var err error
	c.Program, err = findProgram(c.Program)
	return err
}

// PKCS11 has a key in a token. A child process talks to it, so that a vendor's library that crashes or hangs takes
// along nothing but the signatures under way; it is started again at once if it had signed anything, and ever more
// slowly otherwise.
type PKCS11 struct {
	config PKCS11Config
	stop   chan struct{}
	stops  sync.Once
	done   chan struct{}

	mu      sync.Mutex
	child   *child        // that signs, if there is one
	failure error         // why there is none; without one it will soon be started
	changed chan struct{} // closed when these are others
}

var errClosed = fmt.Errorf("%w: it was closed", ErrUnavailable)

// NewPKCS11 starts the child, which is kept until Close. Key tells what came of it.
func NewPKCS11(c PKCS11Config) (*PKCS11, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	k := &PKCS11{config: c, stop: make(chan struct{}), done: make(chan struct{}), changed: make(chan struct{})}
	go k.run()
	return k, nil
}

// Close ends the child and waits for that.
func (k *PKCS11) Close() {
	k.stops.Do(func() { close(k.stop) })
	<-k.done
}

// Key is a Source. It waits for the child's first words.
func (k *PKCS11) Key(ctx context.Context) (Key, error) {
	c, err := k.await(ctx)
	if err != nil {
		return nil, err
	}
	return tokenKey{k, c.public}, nil
}

// await returns the child that signs, or why there is none.
func (k *PKCS11) await(ctx context.Context) (*child, error) {
	for {
		k.mu.Lock()
		c, failure, changed := k.child, k.failure, k.changed
		k.mu.Unlock()
		switch {
		case c != nil && !c.hasEnded():
			return c, nil
		case failure != nil:
			return nil, failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s is being started: %w", ErrUnavailable, k.config.Program, context.Cause(ctx))
		}
	}
}

func (k *PKCS11) become(c *child, failure error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.child, k.failure = c, failure
	close(k.changed)
	k.changed = make(chan struct{})
}

// tokenKey is the key that a child found. Should a later child find another one, this one cannot sign any more.
type tokenKey struct {
	token  *PKCS11
	public crypto.PublicKey
}

func (k tokenKey) Public() crypto.PublicKey { return k.public }

func (k tokenKey) Sign(ctx context.Context, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	r, err := newRequest(k.public, digest, opts)
	if err != nil {
		return nil, err
	}
	c, err := k.token.await(ctx)
	if err != nil {
		return nil, err
	}
	if !same(c.public, k.public) {
		return nil, fmt.Errorf("%w: the token holds another key by now", ErrUnavailable)
	}
	return c.sign(ctx, r)
}
