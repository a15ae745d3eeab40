// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"bufio"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second // of a token that is reached through a network
	stopTimeout  = 3 * time.Second
)

// child is one process that talks to a token.
type child struct {
	config   PKCS11Config
	cmd      *exec.Cmd
	diary    *diary
	public   crypto.PublicKey
	requests chan asked
	gone     chan struct{} // closed when the process has ended

	mu      sync.Mutex
	why     error                    // set once
	last    uint64                   // ID given to a request
	owed    map[uint64]chan<- answer // answers to come, by the ID of the request; the greeting's is 0
	silence *time.Timer              // runs while any is owed
	signed  bool
}

// asked is a request on its way.
type asked struct {
	id      uint64
	line    []byte
	answers chan<- answer // with room for the one there will be: nobody may be there to take it
}

// start runs the program until it told its key, or why it has none. It runs on until stop is closed.
func start(stop <-chan struct{}, config PKCS11Config) (*child, error) {
	c := &child{
		config: config, requests: make(chan asked), gone: make(chan struct{}), owed: map[uint64]chan<- answer{0: nil},
		diary: &diary{logger: config.Logger},
	}
	c.cmd = exec.Command(config.Program, "--module", config.Module, "--token", config.Token, "--key-label", config.KeyLabel, //nolint:noctx // it serves many
		"--key-id", config.KeyID, "--pin-file", config.PINFile, "--sessions", strconv.Itoa(config.Sessions))
	c.cmd.WaitDelay = stopTimeout // for a process of the library's that keeps the pipes
	// The marks by which a process of this host is found again are not the child's.
	c.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUSTER_") })
	c.cmd.Stderr = c.diary
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C is for this process, which may have to sign a little more
	stdin, err := c.cmd.StdinPipe()
	said, saying := io.Pipe() // the child's last answer is read before its end is known
	c.cmd.Stdout = saying
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the program that talks to the token: %w", err)
	}
	c.silence = time.AfterFunc(startTimeout, c.silent)
	greeted := make(chan error, 1)
	var reading sync.WaitGroup
	reading.Go(func() {
		_ = said.CloseWithError(c.read(bufio.NewReaderSize(said, maxLine), greeted))
	})
	done := make(chan struct{})
	go c.write(stdin)
	go c.close(stdin, stop, done)
	go func() {
		err := c.cmd.Wait()
		_ = saying.Close()
		reading.Wait()
		c.end(err)
	}()

	select {
	case err = <-greeted:
	case <-c.gone:
		return nil, c.reason()
	}
	if err != nil {
		c.fail(err)
		close(done)
		<-c.gone
		return nil, c.reason()
	}
	return c, nil
}

// read reads what the child says until it ends or says nonsense.
func (c *child) read(from *bufio.Reader, greeted chan<- error) error {
	var hello greeting
	err := readLine(from, &hello)
	if err == nil {
		public, err := hello.key()
		c.meet(public)
		greeted <- err
		if err != nil {
			return err
		}
	}
	for err == nil {
		var a answer
		if err = readLine(from, &a); err == nil {
			err = c.deliver(a)
		}
	}
	if !errors.Is(err, io.EOF) {
		c.kill(fmt.Errorf("%s does not keep to the protocol: %w", c.config.Program, err))
	}
	return err
}

func (c *child) meet(public crypto.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.public = public
	c.settle(0)
}

// deliver hands an answer to its waiting caller.
func (c *child) deliver(a answer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	to, ok := c.owed[a.ID]
	if !ok {
		return fmt.Errorf("it answered request %d, which waits for no answer", a.ID)
	}
	to <- a
	c.settle(a.ID)
	c.signed = c.signed || a.Error == nil
	return nil
}

// settle is called with the lock held.
func (c *child) settle(id uint64) {
	delete(c.owed, id)
	if len(c.owed) > 0 {
		c.silence.Reset(c.config.Timeout)
	} else {
		c.silence.Stop()
	}
}

// silent is called when the child owes an answer and has given none for too long.
func (c *child) silent() {
	c.mu.Lock()
	owes := len(c.owed) > 0
	c.mu.Unlock()
	if owes {
		c.kill(fmt.Errorf("%s does not answer; does the token hang?", c.config.Program))
	}
}

// write hands on requests. A child that does not read holds up only this.
func (c *child) write(to io.WriteCloser) {
	for {
		select {
		case a := <-c.requests:
			c.owe(a)
			if _, err := to.Write(a.line); err != nil {
				c.kill(fmt.Errorf("talking to %s: %w", c.config.Program, err))
				return
			}
		case <-c.gone:
			return
		}
	}
}

// close lets the child end when it is told to: it does when there is nothing more to read, or is ended.
func (c *child) close(stdin io.Closer, stop, done <-chan struct{}) {
	select {
	case <-stop:
	case <-done:
	case <-c.gone:
	}
	_ = stdin.Close() // it may have been closed by the end of the process
	select {
	case <-c.gone:
	case <-time.After(stopTimeout):
		c.kill(fmt.Errorf("%s did not end", c.config.Program))
	}
}

func (c *child) owe(a asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed[a.id] = a.answers
	if len(c.owed) == 1 {
		c.silence.Reset(c.config.Timeout)
	}
}

// end is called when the process has ended.
func (c *child) end(err error) {
	how := c.cmd.ProcessState.String()
	if c.cmd.ProcessState == nil {
		how = err.Error()
	}
	c.fail(fmt.Errorf("%w: %s ended (%s)%s", ErrUnavailable, c.config.Program, how, c.diary.crash()))
	c.silence.Stop()
	close(c.gone)
}

// fail remembers the first reason why the child cannot go on.
func (c *child) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == nil {
		c.why = why
	}
}

func (c *child) kill(why error) {
	c.fail(fmt.Errorf("%w: %w", ErrUnavailable, why))
	_ = c.cmd.Process.Kill() // it fails only if the process has ended
}

func (c *child) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

func (c *child) hasEnded() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *child) hasSigned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signed
}

func (c *child) sign(ctx context.Context, r request) ([]byte, error) {
	answers := make(chan answer, 1)
	c.mu.Lock()
	c.last++
	r.ID = c.last
	c.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	request := asked{r.ID, append(line, '\n'), answers}
	requests := c.requests
	for {
		select {
		case requests <- request:
			requests = nil // it is under way: only an answer is missing
		case a := <-answers:
			if a.Error != nil {
				return nil, a.Error.err()
			}
			return a.Signature, nil
		case <-c.gone:
			return nil, c.reason()
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no answer from the token: %w", ErrUnavailable, context.Cause(ctx))
		}
	}
}
