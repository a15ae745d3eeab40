// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

// readFile reads what a discovery file says. Of users in it nothing is taken: neither tokens, nor files, nor programs
// to run.
func (d *discoverer) readFile(ctx context.Context) (Cluster, error) {
	raw, directory, err := d.contents(ctx)
	if err != nil {
		return Cluster{}, err
	}
	cluster, users, err := readDiscovery(raw, directory)
	if err != nil {
		return Cluster{}, refuse(BadFile, fmt.Sprintf("the discovery file %s is not usable: %v", safeName(d.File), err))
	}
	if users {
		d.say("the discovery file names users; their credentials are not used: the token of this machine is")
	}
	return cluster, nil
}

// Server is the URL of the API server that a discovery file names. Nothing has vouched for it yet.
func Server(ctx context.Context, c Config) (string, error) {
	d := &discoverer{Config: c}
	if err := d.complete(); err != nil {
		return "", err
	}
	cluster, err := d.readFile(ctx)
	if err != nil {
		return "", err
	}
	return parseEndpoint(cluster.Server)
}

// contents are the file's, and the directory that paths in it are relative to: "" if it comes from elsewhere.
func (d *discoverer) contents(ctx context.Context) (raw []byte, directory string, err error) {
	name := safeName(d.File)
	if !strings.Contains(d.File, "://") {
		f, err := os.Open(d.File)
		if err != nil {
			return nil, "", &Error{Reason: BadFile, Message: fmt.Sprintf("the discovery file cannot be read: %v", err), Err: err}
		}
		defer func() { _ = f.Close() }() // nothing was written
		raw, err := io.ReadAll(io.LimitReader(f, maxKubeconfig+1))
		if err != nil {
			return nil, "", &Error{Reason: BadFile, Message: fmt.Sprintf("the discovery file cannot be read: %v", err), Err: err}
		}
		return raw, filepath.Dir(d.File), nil
	}
	u, err := url.Parse(d.File)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, "", refuse(BadFile, fmt.Sprintf("the discovery file %s is neither a path nor a https URL", name))
	}
	_, err = d.untilSettled(ctx, func(ctx context.Context) (Result, error) {
		status, _, body, err := d.get(ctx, d.File, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: d.SystemRoots, Time: d.Now}, maxKubeconfig)
		switch {
		case errors.Is(err, errTooLarge):
			return Result{}, refuse(BadFile, fmt.Sprintf("the discovery file %s has more than %d KiB", name, maxKubeconfig>>10))
		case err != nil:
			return Result{}, unfetched(name, err)
		case status == http.StatusTooManyRequests || status >= 500:
			return Result{}, refuse(Unreachable, fmt.Sprintf("the discovery file %s cannot be had now (%d)", name, status))
		case status != http.StatusOK:
			return Result{}, refuse(BadFile, fmt.Sprintf("the discovery file %s cannot be had (%d); redirects are not followed", name, status))
		}
		raw = body
		return Result{}, nil
	})
	return raw, "", err
}

// unfetched says why a file cannot be had.
func unfetched(name string, err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // without the address
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Error{Reason: BadFile, Message: fmt.Sprintf("the authorities of this system do not vouch for the server of the discovery file %s: %v", name, verification.Err), Err: err}
	}
	return &Error{Reason: Unreachable, Message: fmt.Sprintf("the discovery file %s cannot be had now: %v", name, err), Err: err}
}

// safeName is how a file may be told: the query of a URL is often a secret, and so is a password.
func safeName(file string) string {
	u, err := url.Parse(file)
	if err != nil || u.Scheme == "" {
		return file
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	return u.Redacted()
}

// readDiscovery reads a kubeconfig: the only cluster in it, or that of its current context.
func readDiscovery(raw []byte, directory string) (cluster Cluster, users bool, err error) {
	config, err := decode(raw)
	if err != nil {
		return Cluster{}, false, err
	}
	c, err := currentCluster(config)
	if err != nil {
		return Cluster{}, false, err
	}
	if err := checkWay(c); err != nil {
		return Cluster{}, false, err
	}
	ca := c.CertificateAuthorityData
	switch {
	case len(ca) > 0 || c.CertificateAuthority == "":
	case directory == "":
		return Cluster{}, false, errors.New("it names a file (certificate-authority), and comes from another machine; put the authority itself into it (certificate-authority-data)")
	default:
		path := c.CertificateAuthority
		if !filepath.IsAbs(path) {
			path = filepath.Join(directory, path)
		}
		f, err := os.Open(path)
		if err != nil {
			return Cluster{}, false, fmt.Errorf("its certificate-authority: %w", err)
		}
		defer func() { _ = f.Close() }() // nothing was written
		if ca, err = io.ReadAll(io.LimitReader(f, maxKubeconfig)); err != nil {
			return Cluster{}, false, fmt.Errorf("its certificate-authority: %w", err)
		}
		if len(ca) == 0 {
			return Cluster{}, false, errors.New("its certificate-authority is empty")
		}
	}
	cluster = Cluster{Server: c.Server, CA: ca}
	if len(ca) > 0 {
		if cluster.Authorities, err = parseAuthorities(ca); err != nil {
			return Cluster{}, false, err
		}
	}
	return cluster, len(config.AuthInfos) > 0, nil
}

func currentCluster(config clientcmd.Config) (clientcmd.Cluster, error) {
	if len(config.Clusters) == 1 {
		return config.Clusters[0].Cluster, nil
	}
	for _, context := range config.Contexts {
		if context.Name != config.CurrentContext {
			continue
		}
		for _, cluster := range config.Clusters {
			if cluster.Name == context.Context.Cluster {
				return cluster.Cluster, nil
			}
		}
	}
	return clientcmd.Cluster{}, fmt.Errorf("it names %d clusters and no current context that tells which", len(config.Clusters))
}

// byFile makes sure that the file is about a cluster that can be reached, once.
func (d *discoverer) byFile(ctx context.Context, cluster Cluster) (Result, error) {
	endpoint, err := parseEndpoint(cluster.Server)
	if err != nil {
		return Result{}, err
	}
	how := "the discovery file " + safeName(d.File) + " names it"
	settings := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: d.SystemRoots, Time: d.Now}
	trusted := cluster.Authorities
	if len(trusted) > 0 {
		if len(d.pins) > 0 {
			if trusted, err = pinned(trusted, d.pins); err != nil {
				return Result{}, err
			}
			how += ", and its authority is the pinned one, " + Pin(trusted[0])
			cluster.CA = encode(trusted) // nothing vouches for others that the file names
		}
		settings.RootCAs = roots(trusted)
	}
	f, err := d.fetchBy(ctx, endpoint, settings, &knowledge{all: cluster.Authorities})
	var refused *Error
	if errors.As(err, &refused) && refused.Reason == Refused && len(cluster.CA) > 0 {
		// The server is the right one: all that cluster-info could add is an authority (kubeadm goes on, too:
		// cmd/kubeadm/app/discovery/file).
		return Result{Endpoint: endpoint, CA: cluster.CA, How: how, Skew: f.ahead.Round(time.Second)}, nil
	}
	if err != nil {
		return Result{}, err
	}
	shown, err := ReadClusterInfo(f.data[kubeconfigKey])
	switch {
	case err == nil && len(cluster.CA) == 0:
		cluster.CA = shown.CA
		if len(d.pins) > 0 {
			found, err := pinned(shown.Authorities, d.pins)
			if err != nil {
				return Result{}, err
			}
			cluster.CA = encode(found)
		}
		how += ", and the system's authorities vouch for its server"
	case len(cluster.CA) == 0:
		return Result{}, refuse(Malformed, fmt.Sprintf("the discovery file %s names no authority, and cluster-info of %s is not usable: %v; put certificate-authority-data into the file", safeName(d.File), endpoint, err))
	}
	d.mention(f.ahead)
	return Result{Endpoint: endpoint, CA: cluster.CA, How: how, Skew: f.ahead.Round(time.Second)}, nil
}
