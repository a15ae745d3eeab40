// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/aws/region"
	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

// issuerRetry is the pause before the documents of issuers are tried to be served again.
const issuerRetry = 2 * time.Second

// checkIssuerHost refuses a host for issuers that is not one, or not the account's.
func (s Session) checkIssuerHost() error {
	if s.IssuerHost == "" && !s.IssuerByAddress {
		return nil
	}
	if err := issuer.CheckHost(s.IssuerHost); err != nil && !s.IssuerByAddress {
		return err
	}
	at, err := issuer.ReadEndpoint(s.State.Issuers())
	in, found := region.Find(cmp.Or(s.Region, region.Default))
	switch {
	case found == nil && slices.Contains(append(in.ServiceNames(), in.RegistryName(component.DefaultAccount)), s.IssuerHost):
		return fmt.Errorf("%s is a name of the account's AWS APIs: choose one that is the issuers' alone", s.IssuerHost)
	case errors.Is(err, fs.ErrNotExist) && !account.InUse(s.State):
		return nil
	case err != nil:
		return err
	case s.IssuerByAddress && !isAddress(at.Name()):
		return fmt.Errorf("issuers of the account in %s are at %s, not at an address, and stay there: leave out the host, or choose another --state-dir", s.State, at.Host)
	case !s.IssuerByAddress && at.Host != s.IssuerHost:
		return fmt.Errorf("issuers of the account in %s are at %s, not %s, and stay there: leave out the host, or choose another --state-dir", s.State, at.Host, s.IssuerHost)
	}
	return nil
}

// makeIssuers makes the account, and says where the issuers of its clusters answer, once: at the host that was given, else at this host's own
// name, else at the account's address; on port 443 or, where this process may not listen on that, on one of its own. unnamed says why it
// is not this host's name, if that was to be chosen and pods were to have it.
func (s Session) makeIssuers(ctx context.Context) (unnamed, err error) {
	own, err := account.Make(s.State, s.Region)
	if err != nil {
		return nil, err
	}
	if _, err := issuer.ReadEndpoint(s.State.Issuers()); err == nil || !errors.Is(err, fs.ErrNotExist) || account.InUse(s.State) {
		return nil, err
	}
	port := issuer.DefaultPort
	if !issuer.Permitted(own.Address, port) {
		if port, err = portplan.Free(own.Address.String()); err != nil {
			return nil, err
		}
	}
	at := issuer.At(own.Address, port)
	switch {
	case s.IssuerHost != "":
		at.Host = s.IssuerHost
	case s.IssuerByAddress || !local.Possible(): // there are no pods without root
	case port != issuer.DefaultPort:
		unnamed = errors.New("this process may not listen on port 443")
	default:
		var name string
		if name, at.Loopback, unnamed = s.hostName(ctx); unnamed == nil {
			at.Host = name
		}
	}
	if !s.wantsLocal() {
		unnamed = nil
	}
	return unnamed, issuer.WriteEndpoint(s.State.Issuers(), at)
}

// readIssuers reads where the issuers of the account's clusters answer, which was said at the first start.
func readIssuers(dir statedir.Dir) (issuer.Endpoint, error) {
	at, err := issuer.ReadEndpoint(dir.Issuers())
	if errors.Is(err, fs.ErrNotExist) {
		return issuer.Endpoint{}, fmt.Errorf("reading where issuers answer: %s is missing, and the state directory is in use: restore the file from a backup, or remove everything with `muster down --delete`", dir.Issuers())
	}
	return at, err
}

// ensureIssuer returns the issuer of a cluster, which is made with the cluster and kept.
func ensureIssuer(state statedir.Dir, dir statedir.Cluster) (component.Issuer, error) {
	at, err := readIssuers(state)
	if err != nil {
		return component.Issuer{}, err
	}
	_, noData := os.Stat(filepath.Join(dir.Etcd(), "member"))
	i, err := issuer.Ensure(dir.Issuer(), at, !errors.Is(noData, fs.ErrNotExist), rand.Reader)
	if err != nil {
		return component.Issuer{}, err
	}
	return component.Issuer{URL: i.String(), Keys: i.Keys(), ID: i.ID}, nil
}

// planIssuer is the issuer for a dry run: one that would be chosen is shown in capitals.
func planIssuer(dir statedir.Cluster) (component.Issuer, error) {
	i, err := issuer.Read(dir.Issuer())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		const url = "https://ADDRESS/id/ID"
		return component.Issuer{URL: url, Keys: url + "/keys", ID: "ID"}, nil
	case err != nil:
		return component.Issuer{}, err
	}
	return component.Issuer{URL: i.String(), Keys: i.Keys(), ID: i.ID}, nil
}

// issuerDocuments finds the documents of the cluster that runs here and whose issuer has an id.
func (s *Service) issuerDocuments(id string) (issuer.Documents, bool) {
	for _, h := range s.clusters() {
		h.mu.Lock()
		own := h.issuing
		h.mu.Unlock()
		if own == nil || own.issuer.ID != id {
			continue
		}
		documents, _, err := own.at(time.Now())
		if err != nil {
			h.log.Error("the documents of the issuer are not served", "error", err)
		}
		return documents, err == nil
	}
	return issuer.Documents{}, false
}

// serveIssuers serves the documents of all clusters' issuers until the context ends, at the account's address and where this host's name led to.
func (s *Service) serveIssuers(ctx context.Context, account component.Account) {
	socket, credentialOf := s.issuersInVPC(account)
	config := issuer.ServerConfig{
		Address: account.Issuers.Address, Port: account.Issuers.Port, Credential: account.Credential(component.CredentialIssuer), Log: s.cfg.Log,
		Lookup: s.issuerDocuments,
	}
	var group sync.WaitGroup
	defer group.Wait()
	if account.Issuers.Loopback.IsValid() {
		byName := config
		byName.Address = account.Issuers.Loopback
		group.Go(func() { s.serveIssuersAt(ctx, byName) })
		group.Go(func() { s.watchHostName(ctx, account.Issuers) })
	}
	config.Socket, config.CredentialOf = socket, credentialOf
	s.serveIssuersAt(ctx, config)
}

// serveIssuersAt serves at one address. A failure to do so is said in the log, once, and in the status until it is over.
func (s *Service) serveIssuersAt(ctx context.Context, config issuer.ServerConfig) {
	config.Listening = func() { s.setIssuerFailure(config.Address, nil) }
	defer config.Listening()
	for ctx.Err() == nil {
		err := issuer.Serve(ctx, config)
		if ctx.Err() != nil {
			return
		}
		s.setIssuerFailure(config.Address, err)
		_ = pause(ctx, issuerRetry)
	}
}

func (s *Service) setIssuerFailure(at netip.Addr, err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	s.mu.Lock()
	changed := s.issuerFailures[at] != failure
	s.issuerFailures[at] = failure
	s.mu.Unlock()
	switch {
	case changed && err != nil:
		s.cfg.Log.Warn("the documents of service account issuers are not served", "address", at.String(), "error", err, "again", issuerRetry)
	case changed:
		s.cfg.Log.Info("the documents of service account issuers are served again", "address", at.String())
	}
}

// issuerFailed are the failures, sorted by address. The service is locked.
func (s *Service) issuerFailed() []string {
	var failures []string
	for _, at := range slices.SortedFunc(maps.Keys(s.issuerFailures), netip.Addr.Compare) {
		if failure := s.issuerFailures[at]; failure != "" {
			failures = append(failures, failure)
		}
	}
	return failures
}
