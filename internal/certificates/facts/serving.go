// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/lru"
)

const (
	servingSource = "the node's kubelet"
	// mostDialed is how many addresses of one node are tried, and mostServing how many nodes are remembered; workers
	// dial at once.
	mostDialed     = 4
	mostServing    = 1000
	servingWorkers = 8
)

// ServingConfig is what Serving needs.
type ServingConfig struct {
	// Authorities are files in PEM of those that sign kubelets' serving certificates. They are read for each answer.
	Authorities []string
	Port        int           // of kubelets; 10250 if 0
	Timeout     time.Duration // of one address; 3 s if 0
	Keep        time.Duration // how long an answer is good; 30 s if 0
	// OnChange is called when an answer is there. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// Serving knows with which certificates kubelets serve, by asking them. It makes a TLS handshake and says nothing; the
// server has to show a certificate that the authorities signed for servers, that is good by now, and that has the
// dialed address in it.
type Serving struct {
	config ServingConfig
	work   chan *servingEntry

	mu      sync.Mutex
	entries *lru.Map[string, *servingEntry]
	asking  map[string]bool // nodes that are being asked about: each takes one worker at most, whatever addresses it asks for
}

type servingEntry struct {
	node      string
	addresses []netip.Addr
	fact      policy.Fact[policy.Serving]
	until     time.Time // the answer is good
}

// NewServing makes one. It knows nothing before Run.
func NewServing(c ServingConfig) (*Serving, error) {
	switch {
	case len(c.Authorities) == 0:
		return nil, errors.New("asking kubelets for their certificates needs the authorities that sign those")
	case c.OnChange == nil, c.Logger == nil:
		return nil, errors.New("asking kubelets for their certificates needs somebody to tell about answers, and a logger")
	}
	if c.Port == 0 {
		c.Port = 10250
	}
	if c.Timeout <= 0 {
		c.Timeout = 3 * time.Second
	}
	if c.Keep <= 0 {
		c.Keep = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Serving{config: c, work: make(chan *servingEntry, mostServing), entries: lru.New[string, *servingEntry](mostServing), asking: map[string]bool{}}
	if _, err := s.authorities(); err != nil { // a file that is missing is told at once
		return nil, err
	}
	return s, nil
}

// Run asks until ctx is done.
func (s *Serving) Run(ctx context.Context) {
	var group sync.WaitGroup
	for range servingWorkers {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-s.work:
					s.answer(ctx, e)
				}
			}
		})
	}
	group.Wait()
}

// Ask answers at once, and has asked what is not known.
func (s *Serving) Ask(node string, addresses []netip.Addr) policy.Fact[policy.Serving] {
	addresses = slices.Clone(addresses[:min(len(addresses), mostDialed)])
	key := fmt.Sprint(node, addresses)
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(key)
	if ok && s.config.Now().Before(e.until) {
		return e.fact
	}
	if !s.asking[node] {
		if !ok {
			e = &servingEntry{node: node, addresses: addresses}
		}
		select {
		case s.work <- e:
			s.asking[node] = true
			s.entries.Put(key, e)
		default:
			return policy.DontKnow[policy.Serving](servingSource, "too many kubelets are being asked")
		}
	}
	return policy.Fact[policy.Serving]{Source: servingSource, Why: "it is being asked", Soon: true}
}

func (s *Serving) answer(ctx context.Context, e *servingEntry) {
	fact := s.find(ctx, e.addresses)
	s.mu.Lock()
	delete(s.asking, e.node)
	if ctx.Err() == nil {
		e.fact, e.until = fact, s.config.Now().Add(s.config.Keep)
	}
	s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	s.config.OnChange(Change{Nodes: []string{e.node}})
}

// find asks at the addresses in turn, until one has an answer.
func (s *Serving) find(ctx context.Context, addresses []netip.Addr) policy.Fact[policy.Serving] {
	roots, err := s.authorities()
	if err != nil {
		return policy.DontKnow[policy.Serving](servingSource, err.Error())
	}
	var failed []string
	for _, a := range addresses {
		found, err := s.shown(ctx, a, roots)
		if err == nil {
			return policy.Know(found, servingSource, s.config.Now())
		}
		failed = append(failed, fmt.Sprintf("%s: %v", a, err))
	}
	return policy.DontKnow[policy.Serving](servingSource, strings.Join(failed, "; "))
}

func (s *Serving) authorities() (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	for _, file := range s.config.Authorities {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the authority of kubelets' serving certificates: %w", err)
		}
		if !roots.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("the authority of kubelets' serving certificates in %s is not a certificate in PEM", file)
		}
	}
	return roots, nil
}

// shown is the certificate that somebody shows at an address, and has the key of.
func (s *Serving) shown(ctx context.Context, at netip.Addr, roots *x509.CertPool) (policy.Serving, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	var found policy.Serving
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // G402: VerifyConnection verifies, and there is no name to verify for
		VerifyConnection: func(state tls.ConnectionState) (err error) {
			found, err = s.read(state.PeerCertificates, at, roots)
			return err
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.String(), strconv.Itoa(s.config.Port)))
	if err != nil {
		return policy.Serving{}, err
	}
	_ = conn.Close() // nothing was said
	return found, nil
}

// read verifies a chain as a client of the address would, and reads the owner of the certificate.
func (s *Serving) read(chain []*x509.Certificate, at netip.Addr, roots *x509.CertPool) (policy.Serving, error) {
	if len(chain) == 0 {
		return policy.Serving{}, errors.New("it shows no certificate")
	}
	leaf, between := chain[0], x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: s.config.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSName: at.String(),
	}); err != nil {
		return policy.Serving{}, err
	}
	node, ok := strings.CutPrefix(leaf.Subject.CommonName, "system:node:")
	if !ok || !slices.Equal(leaf.Subject.Organization, []string{"system:nodes"}) {
		return policy.Serving{}, fmt.Errorf("the certificate is %.200q's, which is not a node", leaf.Subject.String())
	}
	found := policy.Serving{Node: node, Names: leaf.DNSNames, Asked: at}
	for _, ip := range leaf.IPAddresses {
		a, _ := netip.AddrFromSlice(ip)
		found.Addresses = append(found.Addresses, a.Unmap())
	}
	return found, nil
}
