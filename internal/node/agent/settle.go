// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/discovery"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// settle completes a NodeConfig: the token is read from its file, and the cluster is discovered. A machine that has
// joined keeps the authorities that it trusts already.
func settle(ctx context.Context, spec nodeconfig.Spec, joined bool, say func(string)) (nodeconfig.Spec, error) {
	if problems := spec.Validate(); len(problems) > 0 {
		return spec, fmt.Errorf("NodeConfig: %w", problems.ToAggregate())
	}
	if spec.Join.TokenFile != "" {
		text, err := readTokenFile(spec.Join.TokenFile)
		switch {
		case err == nil:
			spec.Join.Token, spec.Join.TokenFile = text, ""
			if _, err := token.Parse(spec.Join.Token); err != nil {
				return spec, fmt.Errorf("spec.join.tokenFile: %w", err)
			}
		case !joined || !errors.Is(err, fs.ErrNotExist):
			return spec, fmt.Errorf("spec.join.tokenFile: %w", err)
		}
	}
	if joined && spec.Cluster.APIServerEndpoint != "" {
		// It may have been told of newer authorities since (watchNode) than it was launched with.
		if authority, err := os.ReadFile(render.PathCA); err == nil {
			spec.Cluster.CertificateAuthority, spec.Join.CACertHashes, spec.Join.DiscoveryFile = authority, nil, ""
		}
	}
	told, err := nodeconfig.Pinned(spec.Cluster.CertificateAuthority, spec.Join.CACertHashes)
	switch {
	case len(spec.Cluster.CertificateAuthority) == 0:
		return discover(ctx, spec, say)
	case err != nil:
		return spec, fmt.Errorf("spec.join.caCertHashes: %w", err)
	}
	// Nothing vouches for those that no hash names.
	spec.Cluster.CertificateAuthority = told
	if spec.Join.DiscoveryFile == "" {
		return spec, nil
	}
	// Somebody wants the cluster to be asked for: a launch template's authority, which user data cannot take away, is
	// what is found measured by.
	if spec.Join.CACertHashes, err = discovery.Pins(told); err != nil {
		return spec, fmt.Errorf("spec.cluster.certificateAuthority: %w", err)
	}
	return discover(ctx, spec, say)
}

// maxTokenFile is far more than a token has.
const maxTokenFile = 1 << 10

func readTokenFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxTokenFile+1))
	if err == nil && len(raw) > maxTokenFile {
		err = fmt.Errorf("%s has more than %d bytes, so it is not a file with a token alone", path, maxTokenFile)
	}
	return strings.TrimSpace(string(raw)), err
}

// discoveryPatience is short, since the caller tries again, by then perhaps with another token.
const discoveryPatience = 30 * time.Second

func discover(ctx context.Context, spec nodeconfig.Spec, say func(string)) (nodeconfig.Spec, error) {
	config := discovery.Config{
		CACertHashes: spec.Join.CACertHashes, UnsafeSkipCAVerification: spec.Join.UnsafeSkipCAVerification,
		File: spec.Join.DiscoveryFile, Timeout: discoveryPatience, Progress: say,
	}
	if config.File == "" {
		config.Endpoint = spec.Cluster.APIServerEndpoint
		known, err := token.Parse(spec.Join.Token)
		if err != nil {
			return spec, fmt.Errorf("spec.join.token: %w", err)
		}
		config.Token = known
	}
	found, err := discovery.Discover(ctx, config)
	if err != nil {
		return spec, err
	}
	say("found the cluster at " + found.Endpoint + ": " + found.How)
	spec.Cluster.CertificateAuthority = found.CA
	if spec.Cluster.APIServerEndpoint == "" {
		spec.Cluster.APIServerEndpoint = found.Endpoint
	}
	return spec, nil
}
