// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/miekg/pkcs11"
)

// token is a token in which a key was found.
type token struct {
	config config
	lib    *pkcs11.Ctx
	slot   uint
	public crypto.PublicKey
	pool   *pool
}

// open loads the library, finds token and key, and signs something, so that what cannot sign is known at once.
func open(c config) (*token, error) {
	if _, err := os.Stat(c.module); err != nil {
		return nil, fmt.Errorf("looking for the PKCS #11 library: %w", err)
	}
	t := &token{config: c, lib: pkcs11.New(c.module)}
	if t.lib == nil {
		return nil, fmt.Errorf("%s cannot be loaded: it is no PKCS #11 library for this system, or needs another one (ldd %s)", c.module, c.module)
	}
	if err := t.find(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *token) find() error {
	if err := t.lib.Initialize(); err != nil {
		return fmt.Errorf("starting %s: %w", t.config.module, err)
	}
	var err error
	if t.slot, err = t.findSlot(); err != nil {
		return err
	}
	first, err := t.openSession()
	if err != nil {
		return err
	}
	if t.public, err = t.publicKey(first); err != nil {
		return err
	}
	if err := t.try(first); err != nil {
		return err
	}
	t.pool = newPool(t.config.sessions, first, t.openSession)
	return nil
}

func (t *token) close() {
	_ = t.lib.CloseAllSessions(t.slot) // it ends anyhow
	_ = t.lib.Finalize()
	t.lib.Destroy()
}

// findSlot looks for the one token of that name.
func (t *token) findSlot() (uint, error) {
	slots, err := t.lib.GetSlotList(true)
	if err != nil {
		return 0, fmt.Errorf("listing tokens: %w", err)
	}
	var found []uint
	var there []string
	for _, slot := range slots {
		info, err := t.lib.GetTokenInfo(slot)
		if err != nil || info.Flags&pkcs11.CKF_TOKEN_INITIALIZED == 0 {
			continue // a token in another slot that is broken or empty is not this one
		}
		label := strings.TrimRight(info.Label, " \x00")
		there = append(there, fmt.Sprintf("%q (serial number %s)", label, strings.TrimSpace(info.SerialNumber)))
		if label == t.config.token {
			found = append(found, slot)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if len(there) == 0 {
			there = []string{"none"}
		}
		return 0, fail(unavailable, "there is no token with the label %q; there are: %s", t.config.token, strings.Join(there, ", "))
	}
	return 0, fmt.Errorf("%d tokens have the label %q; give one another label: %s", len(found), t.config.token, strings.Join(there, ", "))
}

// session is one session, logged in, with the key's handle in it.
type session struct {
	handle pkcs11.SessionHandle
	key    pkcs11.ObjectHandle
}

// openSession opens one. Once the key is known, it must be the same.
func (t *token) openSession() (*session, error) {
	handle, err := t.lib.OpenSession(t.slot, pkcs11.CKF_SERIAL_SESSION)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	s := &session{handle: handle}
	if err := t.enter(s); err != nil {
		_ = t.lib.CloseSession(handle)
		return nil, err
	}
	return s, nil
}

func (t *token) enter(s *session) error {
	if err := t.login(s.handle); err != nil {
		return err
	}
	var err error
	if s.key, err = t.findKey(s.handle); err != nil {
		return err
	}
	if t.public == nil {
		return nil
	}
	public, err := t.publicKey(s)
	if err != nil {
		return err
	}
	if !same(public, t.public) {
		return fail(unavailable, "the token holds another key with %s by now", t.config.key())
	}
	return nil
}

// login logs in unless all sessions are already, as they are together.
func (t *token) login(handle pkcs11.SessionHandle) error {
	info, err := t.lib.GetSessionInfo(handle)
	if err != nil {
		return fmt.Errorf("looking at a session: %w", err)
	}
	if slices.Contains([]uint{pkcs11.CKS_RO_USER_FUNCTIONS, pkcs11.CKS_RW_USER_FUNCTIONS}, info.State) {
		return nil
	}
	token, err := t.lib.GetTokenInfo(t.slot)
	switch {
	case err != nil:
		return fmt.Errorf("looking at the token: %w", err)
	case token.Flags&pkcs11.CKF_USER_PIN_LOCKED != 0:
		return fail(badPIN, "the token %q is locked after too many wrong PINs; its security officer can unlock it", t.config.token)
	case token.Flags&pkcs11.CKF_USER_PIN_FINAL_TRY != 0:
		return fail(badPIN, "one more wrong PIN locks the token %q, and this program will not try it; log in by hand once", t.config.token)
	}
	pin, err := readPIN(t.config.pinFile)
	if err != nil {
		return failure{badPIN, err}
	}
	err = t.lib.Login(handle, pkcs11.CKU_USER, pin)
	if err != nil && !errors.Is(err, pkcs11.Error(pkcs11.CKR_USER_ALREADY_LOGGED_IN)) {
		return fmt.Errorf("logging in to the token %q with the PIN in %s: %w", t.config.token, t.config.pinFile, err)
	}
	return nil
}
