// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/miekg/pkcs11"
)

// opener opens sessions until it may not.
type opener struct {
	errs   []error
	opened int
}

func (o *opener) open() (*session, error) {
	o.opened++
	if len(o.errs) > 0 {
		err := o.errs[0]
		o.errs = o.errs[1:]
		if err != nil {
			return nil, err
		}
	}
	return &session{handle: pkcs11.SessionHandle(o.opened)}, nil
}

func take(t *testing.T, p *pool) *session {
	t.Helper()
	s, err := p.take()
	if err != nil || s == nil {
		t.Fatalf("got %v, %v", s, err)
	}
	return s
}

func TestPoolOpensWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{}
		p := newPool(2, &session{}, o.open)
		first := take(t, p)
		p.put(first)
		if again := take(t, p); again != first || o.opened != 0 {
			t.Errorf("opened %d although one was idle", o.opened)
		}
		take(t, p)
		var third *session
		go func() { third, _ = p.take() }()
		synctest.Wait()
		if third != nil || o.opened != 1 {
			t.Fatalf("opened %d of two", 1+o.opened)
		}
		p.put(first)
		synctest.Wait()
		if third != first {
			t.Errorf("got %v", third)
		}
	})
}

func TestPoolTakesWhatTheTokenGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{errs: []error{pkcs11.Error(pkcs11.CKR_SESSION_COUNT)}}
		p := newPool(16, &session{}, o.open)
		first := take(t, p)
		for range 3 {
			go func() { p.put(take(t, p)) }()
		}
		synctest.Wait()
		p.put(first)
		synctest.Wait()
		if o.opened != 1 || len(p.idle) != 1 {
			t.Errorf("tried %d times, %d idle", o.opened, len(p.idle))
		}
	})
}

// A wrong PIN counts: whatever kept a session from being opened is not tried again, but a session that others closed
// is.
func TestPoolTriesOnce(t *testing.T) {
	wrong := pkcs11.Error(pkcs11.CKR_PIN_INCORRECT)
	o := &opener{errs: []error{wrong, nil}}
	p := newPool(16, &session{}, o.open)
	take(t, p)
	for range 3 {
		if _, err := p.take(); !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
		if _, err := p.renew(); !errors.Is(err, wrong) {
			t.Errorf("got %v", err)
		}
	}
	if o.opened != 1 {
		t.Errorf("tried %d times", o.opened)
	}

	o = &opener{errs: []error{pkcs11.Error(pkcs11.CKR_SESSION_HANDLE_INVALID), nil}}
	if s, err := newPool(16, &session{}, o.open).renew(); s == nil || err != nil {
		t.Errorf("got %v, %v", s, err)
	}
}
