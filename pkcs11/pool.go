// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"sync"

	"github.com/miekg/pkcs11"
)

// pool keeps sessions for the next signature. More are opened while all are in use, up to a number or to what the token
// gives.
type pool struct {
	idle chan *session
	open func() (*session, error)

	mu     sync.Mutex // held while one is opened, never during a signature
	opened int
	most   int
	broken error // why none can be opened: then it is not tried again, because a PIN that is wrong now stays wrong
}

func newPool(most int, first *session, open func() (*session, error)) *pool {
	p := &pool{idle: make(chan *session, most), open: open, opened: 1, most: most}
	p.idle <- first
	return p
}

// take waits for a session. Each that is taken is put back.
func (p *pool) take() (*session, error) {
	select {
	case s := <-p.idle:
		return s, nil
	default:
	}
	if s, err := p.more(); s != nil || err != nil {
		return s, err
	}
	return <-p.idle, nil
}

// more opens a session if there may be one more.
func (p *pool) more() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened >= p.most {
		return nil, nil //nolint:nilnil // there are enough
	}
	s, err := p.attempt()
	if errors.Is(err, pkcs11.Error(pkcs11.CKR_SESSION_COUNT)) {
		p.most = p.opened
		return nil, nil //nolint:nilnil // those that there are must do
	}
	if err != nil {
		return nil, err
	}
	p.opened++
	return s, nil
}

// renew opens a session in place of one that was lost.
func (p *pool) renew() (*session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.attempt()
}

func (p *pool) attempt() (*session, error) {
	if p.broken != nil {
		return nil, p.broken
	}
	s, err := p.open()
	if sessionLost(err) { // by what else is going on
		s, err = p.open()
	}
	if err != nil && !errors.Is(err, pkcs11.Error(pkcs11.CKR_SESSION_COUNT)) {
		p.broken = err
	}
	return s, err
}

func (p *pool) put(s *session) { p.idle <- s }
