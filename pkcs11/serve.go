// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxWaiting are the most requests at once: the parent has as many as it has workers.
const maxWaiting = 1024

// stopTimeout is for what is under way at the end.
const stopTimeout = 2 * time.Second

// server answers requests, many at once and in any order.
type server struct {
	token *token
	room  chan struct{}
	ended chan error // the token is lost: only a new process can find it again

	mu  sync.Mutex
	out io.Writer
}

// serve greets and answers until there are no more requests.
func serve(in io.Reader, out io.Writer, t *token) error {
	s := &server{token: t, out: out, room: make(chan struct{}, maxWaiting), ended: make(chan error, 1)}
	der, err := x509.MarshalPKIXPublicKey(t.public)
	if err != nil {
		return fmt.Errorf("encoding the public key: %w", err)
	}
	if err := s.say(greeting{Version: version, Public: der}); err != nil {
		return err
	}
	go func() { s.end(s.read(bufio.NewReaderSize(in, maxLine))) }()
	err = <-s.ended
	s.stop()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// stop leaves the library in good order if what is under way ends soon. Some hang.
func (s *server) stop() {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for range cap(s.room) {
			s.room <- struct{}{}
		}
		s.token.close()
	}()
	select {
	case <-stopped:
	case <-time.After(stopTimeout):
	}
}

func (s *server) read(from *bufio.Reader) error {
	for {
		r, err := readRequest(from)
		if err != nil {
			return err
		}
		select {
		case s.room <- struct{}{}:
			go s.answer(r)
		default:
			if err := s.say(answer{ID: r.ID, Error: &wrong{unavailable, "too many requests at once"}}); err != nil {
				return err
			}
		}
	}
}

func (s *server) answer(r request) {
	defer func() { <-s.room }()
	a := answer{ID: r.ID}
	signature, err := s.token.sign(r)
	if err != nil {
		a.Error = fault(err)
	} else {
		a.Signature = signature
	}
	if err := s.say(a); err != nil {
		s.end(err)
	}
	if errors.As(err, new(lost)) {
		s.end(err)
	}
}

func (s *server) say(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return put(s.out, v)
}

// end remembers the first reason only.
func (s *server) end(err error) {
	select {
	case s.ended <- err:
	default:
	}
}
