// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"

	"muster.dev/muster/internal/image/pulledstore"
)

const (
	// flightTime is how long the pull of one blob may take.
	flightTime = time.Hour
	chunk      = 256 << 10
	// lookInterval is how often a pull looks whether it still may.
	lookInterval = time.Second
	// maxFlights bounds the blobs that are pulled at once. A VPC may have as many as are left, for a registry may take
	// an hour over each.
	maxFlights = 64
	// minRoom is what a pull leaves free on the host's disk, in bytes: etcd is on it, too.
	minRoom = 1 << 30
)

// flightKey is whose a pull is: what one VPC may reach another may not.
type flightKey struct {
	place
	repository string
	sum        digest.Digest
}

// flight is one blob that is being pulled, for all that want it.
type flight struct {
	mutex    sync.Mutex
	changed  chan struct{}         // closed when something of what follows has changed
	incoming *pulledstore.Incoming // nil before it has begun, and when it is in the store or gone
	size     int64                 // -1 if the registry does not say
	at       int64
	done     bool
	err      error
}

// pull joins the pull of a blob, or begins it.
func (h *Handler) pull(q *request, sum digest.Digest) (*flight, error) {
	c, err := h.client(q)
	if err != nil {
		return nil, err
	}
	key := flightKey{q.place, q.repository, sum}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if f := h.flights[key]; f != nil {
		return f, nil
	}
	if !h.slots.take(q.vpc) {
		return nil, &failure{http.StatusTooManyRequests, "TOOMANYREQUESTS", fmt.Sprintf("%d blobs are being pulled, %d of this VPC: try again", h.slots.taken, h.slots.vpcs[q.vpc])}
	}
	f := &flight{changed: make(chan struct{})}
	h.flights[key] = f
	go func() {
		ctx, cancel := context.WithTimeout(h.life, flightTime)
		defer cancel()
		err := h.fly(ctx, f, c, q.vpc, q.repository, sum, q.settings.MaxSize.Value())
		h.mutex.Lock()
		delete(h.flights, key) // first: whoever finds no blob and no flight begins another one
		h.slots.give(q.vpc)
		h.mutex.Unlock()
		f.change(func() { f.done, f.err = true, err })
		if err == nil {
			h.collect(q.settings.MaxSize.Value())
		}
	}()
	return f, nil
}

// fly pulls a blob into the store.
func (h *Handler) fly(ctx context.Context, f *flight, c *client, vpc, repository string, sum digest.Digest, bound int64) error {
	if file, err := h.Store.Blob(sum); err == nil { // another flight has just brought it
		return file.Close()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, size, err := c.Blob(ctx, repository, sum)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if err := h.room(vpc, max(size, 0), bound); err != nil {
		return err
	}
	incoming, err := h.Store.Begin()
	if err != nil {
		return err
	}
	f.change(func() { f.incoming, f.size = incoming, size })
	defer func() { h.pulling.end(vpc, f.at) }() // f.at is changed by this function alone
	resting := time.AfterFunc(restTime, func() { cancel(fmt.Errorf("the registry sent nothing for %s", restTime)) })
	defer resting.Stop()
	part, looked := make([]byte, chunk), time.Now()
	for err == nil {
		if time.Since(looked) > lookInterval {
			looked = time.Now()
			if err := errors.Join(h.stillOpen(vpc, c), h.room(vpc, 0, bound)); err != nil {
				return errors.Join(err, f.end(incoming.Drop))
			}
		}
		var n int
		n, err = body.Read(part)
		resting.Reset(restTime)
		if n == 0 {
			continue
		}
		fits := h.pulling.add(vpc, int64(n), bound) // whatever comes of it: all of f.at is taken away in the end
		if _, wrong := incoming.Write(part[:n]); wrong != nil {
			err = wrong
		} else if !fits {
			err = errTooLarge(bound)
		}
		f.change(func() { f.at += int64(n) })
		h.pulled.Add(float64(n))
	}
	if !errors.Is(err, io.EOF) {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return errors.Join(err, f.end(incoming.Drop))
	}
	return f.end(func() error { return incoming.Keep(sum) })
}

// room returns an error if a blob of a size may not be pulled: all running pulls together stay within the bound of kept
// blobs, those of one VPC within its share of the bound, and the disk keeps minRoom.
func (h *Handler) room(vpc string, size, bound int64) error {
	if !h.pulling.fits(vpc, size, bound) {
		return errTooLarge(bound)
	}
	free, err := h.Store.Free()
	if err == nil && free-size < minRoom {
		err = &failure{http.StatusInsufficientStorage, "UNKNOWN", fmt.Sprintf("the host's disk has %d bytes left, of which %d are not for images", free, int64(minRoom))}
	}
	return err
}

func errTooLarge(bound int64) error {
	return &failure{http.StatusInsufficientStorage, "UNKNOWN", fmt.Sprintf("what is being pulled has more bytes than maxSize in registries.yaml, %d, or than a VPC's share of it", bound)}
}

// change changes something of a flight, and says so to all that wait.
func (f *flight) change(fn func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	fn()
	close(f.changed)
	f.changed = make(chan struct{})
}

// end takes the file of a flight away, which nobody opens any more then.
func (f *flight) end(fn func() error) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.incoming = nil
	return fn()
}

// state is how far a flight is, and what is closed when that changes.
func (f *flight) state() (at int64, done bool, err error, changed <-chan struct{}) { //nolint:staticcheck // the error is a part of the state
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.at, f.done, f.err, f.changed
}

// open waits until a flight has begun, and opens what there is of it. The file is nil if it is whole, and in the store.
func (f *flight) open(ctx context.Context) (file *os.File, size int64, err error) {
	for {
		f.mutex.Lock()
		size, done, err, changed, incoming := f.size, f.done, f.err, f.changed, f.incoming
		if incoming != nil {
			file, err = incoming.Open()
		}
		f.mutex.Unlock()
		if incoming != nil {
			return file, size, err
		}
		if done {
			return nil, 0, err
		}
		select {
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		case <-changed:
		}
	}
}

// copy copies a flight as it comes, but for the last byte, which waits until the digest is known to be right.
func (f *flight) copy(ctx context.Context, w io.Writer, file io.Reader) error {
	var sent int64
	for {
		at, done, err, changed := f.state()
		if done && err != nil {
			return err
		}
		if !done {
			at--
		}
		if at > sent {
			n, err := io.CopyN(w, file, at-sent)
			if sent += n; err != nil {
				return err
			}
			continue
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// wait waits for the end of a flight.
func (f *flight) wait(ctx context.Context) error {
	for {
		_, done, err, changed := f.state()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// grown is how many bytes of manifests are kept before it is looked whether all together are too many.
const grown = 64 << 20

// grew makes room for manifests each time that they have grown by a certain size: a registry may have any number of
// manifests whose blobs are never pulled.
func (h *Handler) grew(size, bound int64) {
	if h.sinceCollected.Add(size) >= grown {
		h.sinceCollected.Store(0)
		h.collect(bound)
	}
}

// collect makes room, one at a time.
func (h *Handler) collect(bound int64) {
	h.collected.Lock()
	defer h.collected.Unlock()
	blobs, removed, left, err := h.Store.Collect(bound)
	switch {
	case err != nil:
		h.Log.Error("cannot remove pulled images that were used longest ago", "error", err)
	case blobs > 0:
		h.Log.Info("removed what was pulled and used longest ago", "blobs", blobs, "bytes", removed, "left", left)
	}
}
