// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/cmd/muster/thishost"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/configsource"
	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/node/hostjoin"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/node/localdisk"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/termsafe"
)

// request puts together what flags and configuration say; flags win.
func (j *joinCommand) request(ctx context.Context) (hostjoin.JoinRequest, error) {
	if j.endpoint != "" && j.file != "" {
		return hostjoin.JoinRequest{}, terminal.UsageError{Err: errors.New("give HOST:PORT or --discovery-file, not both")}
	}
	if err := j.checkIgnored(); err != nil {
		return hostjoin.JoinRequest{}, err
	}
	spec, err := j.configuration(ctx)
	if err != nil {
		return hostjoin.JoinRequest{}, err
	}
	if err := j.fillIn(spec); err != nil {
		return hostjoin.JoinRequest{}, err
	}
	t, err := j.readToken()
	if err != nil {
		return hostjoin.JoinRequest{}, err
	}
	if j.endpoint == "" && j.file == "" {
		return hostjoin.JoinRequest{}, terminal.UsageError{Err: errors.New("no cluster named: give HOST:PORT or --discovery-file")}
	}
	if t.IsZero() && j.file == "" && !joinedAlready() {
		return hostjoin.JoinRequest{}, terminal.UsageError{Err: errors.New("no bootstrap token given: use --token-file FILE, or --token - to read it from standard input (muster token create makes one)")}
	}
	where := discovery.Config{
		Endpoint: j.endpoint, Token: t, CACertHashes: j.hashes, UnsafeSkipCAVerification: j.skipCA, File: j.file,
		Progress: func(text string) { fmt.Fprintf(j.Err, "         discovery      %s\n", text) },
	}
	if !t.IsZero() || j.file != "" { // else it has joined, and looks for nothing
		if err := where.Check(); err != nil {
			return hostjoin.JoinRequest{}, terminal.UsageError{Err: err}
		}
	}
	r := hostjoin.JoinRequest{
		Endpoint: j.endpoint, Token: t, Pins: j.hashes, Spec: spec, NodeName: j.nodeName, Timeout: j.timeout,
		SkipKubeProxy: j.skipKubeProxy, Preflight: func(ctx context.Context) (string, error) { return j.preflight(ctx, spec) },
		Discover: func(ctx context.Context) (hostjoin.Found, error) {
			where.Timeout = sooner(ctx, j.timeout)
			found, err := discovery.Discover(ctx, where)
			return hostjoin.Found{Endpoint: found.Endpoint, CA: found.CA, How: found.How}, err
		},
	}
	if storage := spec.Instance.LocalStorage; localdisk.Wanted(storage) {
		r.Storage = func(ctx context.Context, say func(string)) error {
			return agent.PrepareDisks(ctx, storage, say)
		}
	}
	if r.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return hostjoin.JoinRequest{}, fmt.Errorf("reading this host's name: %w; say which with --node-name", err)
		}
		r.NodeName = strings.ToLower(strings.TrimSpace(name))
	}
	if j.nodeIP != "" {
		if r.NodeIP, err = netip.ParseAddr(j.nodeIP); err != nil {
			return hostjoin.JoinRequest{}, terminal.UsageError{Err: fmt.Errorf("invalid --node-ip %q: must be an IP address", j.nodeIP)}
		}
	}
	return r, nil
}

// sooner returns a little less time than the context leaves, so that discovery ends first, with an error about what it
// waited for.
func sooner(ctx context.Context, timeout time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end)-500*time.Millisecond)
	}
	return max(timeout.Truncate(100*time.Millisecond), 100*time.Millisecond)
}

// fillIn takes from the configuration what no flag sets. An authority in it pins the cluster.
func (j *joinCommand) fillIn(spec nodeconfig.Spec) error {
	join := spec.Join
	if j.token == "" && j.tokenFile == "" {
		j.token, j.tokenFile = join.Token, join.TokenFile
	}
	if len(j.hashes) == 0 {
		j.hashes = join.CACertHashes
	}
	if authority := spec.Cluster.CertificateAuthority; len(authority) > 0 {
		told, err := nodeconfig.Pinned(authority, lower(j.hashes))
		if err == nil {
			j.hashes, err = discovery.Pins(told)
		}
		if err != nil {
			return fmt.Errorf("--ca-cert-hash, or spec.join.caCertHashes: %w", err)
		}
	}
	j.skipCA = j.skipCA || join.UnsafeSkipCAVerification
	if j.file == "" && j.endpoint == "" {
		j.file = join.DiscoveryFile
	}
	if j.nodeName == "" {
		j.nodeName = join.NodeName
	}
	if j.endpoint == "" && j.file == "" {
		j.endpoint = strings.TrimSuffix(strings.TrimPrefix(spec.Cluster.APIServerEndpoint, "https://"), "/")
	}
	return nil
}

// lower is how hashes are compared.
func lower(hashes []string) []string {
	all := make([]string, len(hashes))
	for i, hash := range hashes {
		all[i] = strings.ToLower(hash)
	}
	return all
}

// configuration reads all sources; there need be none.
func (j *joinCommand) configuration(ctx context.Context) (nodeconfig.Spec, error) {
	if len(j.sources) == 0 {
		return nodeconfig.Spec{}, nil
	}
	for _, name := range j.sources {
		if err := configsource.Check(name); err != nil {
			return nodeconfig.Spec{}, terminal.UsageError{Err: err}
		}
	}
	found, err := configsource.Load(ctx, j.sources, configsource.Readers{UserData: imds.NewClient("").UserData})
	if err != nil {
		return nodeconfig.Spec{}, err
	}
	merged, err := nodeconfig.Read(found.Documents, j.lenient)
	if err != nil {
		return nodeconfig.Spec{}, thishost.ConfigError(err)
	}
	for _, warning := range append(found.Doubts, merged.Warnings...) {
		fmt.Fprint(j.Err, termsafe.Lines("Warning: "+warning+"\n"))
	}
	return merged.Spec, nil
}

// maxTokenFile is far more than a token has.
const maxTokenFile = 1 << 10

// readToken reads the token from where it is said to be. No error shows it.
func (j *joinCommand) readToken() (token.Token, error) {
	var text string
	switch {
	case j.token != "" && j.tokenFile != "":
		return token.Token{}, terminal.UsageError{Err: errors.New("give the token by --token or by --token-file, not both")}
	case j.token == "-":
		line, err := bufio.NewReader(io.LimitReader(j.In, maxTokenFile)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return token.Token{}, fmt.Errorf("reading the token from standard input: %w", err)
		}
		text = line
	case j.token != "":
		text = j.token
	case j.tokenFile != "":
		raw, err := terminal.ReadFile(j.tokenFile, "the token", maxTokenFile)
		if err != nil {
			return token.Token{}, err
		}
		text = string(raw)
	default:
		return token.Token{}, nil
	}
	t, err := token.Parse(strings.TrimSpace(text))
	if err != nil {
		return token.Token{}, terminal.UsageError{Err: err}
	}
	return t, nil
}

func joinedAlready() bool {
	_, err := hostjoin.ReadLedger("")
	return err == nil
}
