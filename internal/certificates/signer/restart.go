// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	firstDelay = 100 * time.Millisecond
	mostDelay  = 30 * time.Second
	lookAtPIN  = time.Second
)

// run keeps a child until Close.
func (k *PKCS11) run() {
	defer close(k.done)
	defer k.become(nil, errClosed)
	var delay time.Duration
	for {
		pin, _ := look(k.config.PINFile) // the child says what is wrong with it
		c, err := start(k.stop, k.config)
		if err == nil {
			k.config.Logger.Info("token found", "token", k.config.Token, "key_label", k.config.KeyLabel, "key_id", k.config.KeyID)
			k.become(c, nil)
			<-c.gone
			err = c.reason()
		}
		switch {
		case k.stopped():
			return
		case c != nil && c.hasSigned():
			delay = 0
			k.become(nil, nil) // callers of Sign wait for the next one
		default:
			delay = min(max(firstDelay, 2*delay), mostDelay)
			k.become(nil, err)
		}
		k.config.Logger.Warn("no signatures from the token until its program was started again",
			"token", k.config.Token, "program", k.config.Program, "delay", delay, "error", err)
		if errors.Is(err, errPIN) {
			k.awaitPIN(pin)
		} else {
			k.wait(delay)
		}
		if k.stopped() {
			return
		}
	}
}

// awaitPIN waits for another PIN: the same one again and again would lock the token.
func (k *PKCS11) awaitPIN(seen fingerprint) {
	for !k.stopped() {
		if now, err := look(k.config.PINFile); err == nil && now != seen {
			return
		}
		k.wait(lookAtPIN)
	}
}

func (k *PKCS11) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-k.stop:
	}
}

func (k *PKCS11) stopped() bool {
	select {
	case <-k.stop:
		return true
	default:
		return false
	}
}

// findProgram prefers what is installed beside this program: that is what it was built with.
func findProgram(name string) (string, error) {
	if name == "" {
		name = "muster-pkcs11"
	}
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("finding the program that talks to the token: %w; it is built by make and belongs beside muster", err)
	}
	return found, nil
}
