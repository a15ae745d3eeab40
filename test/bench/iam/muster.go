// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
)

// parts are those of muster's authenticator, put together as muster authenticator does.
type parts struct {
	hosts    ststoken.Hosts
	verifier tokenverify.Verifier
	whole    *authenticator.Authenticator
	now      func() time.Time
}

// mappings are for both: one role, whose sessions become users of their name.
const mappings = `mapRoles:
- rolearn: ` + role + `
  username: bench:{{SessionName}}
  groups: [bench]
`

func remoteParts(_ context.Context, p place) (*parts, error) {
	roots, err := authorities(p.ca())
	if err != nil {
		return nil, err
	}
	remote, err := tokenverify.NewRemote(tokenverify.RemoteConfig{
		ClusterID: cluster, Endpoints: map[string]string{host: "https://" + p.sts}, RootCAs: roots, Logger: quietly(),
	})
	if err != nil {
		return nil, err
	}
	return newParts(remote, nil)
}

func ownParts(ctx context.Context, p place) (*parts, error) {
	client, err := keyservice.NewClient(keyservice.ClientConfig{Socket: p.socket(), Credential: credential(p.socket(), "authenticator"), Logger: quietly()})
	if err != nil {
		return nil, err
	}
	own, err := tokenverify.NewOwn(tokenverify.OwnConfig{ClusterID: cluster, Account: client, Live: client.Live})
	if err != nil {
		return nil, err
	}
	made, err := newParts(own, client.Live)
	if err != nil {
		return nil, err
	}
	go client.Watch(ctx, func(c keyservice.Change) {
		own.Forget(c)
		made.whole.Forget(c)
	})
	for begun := time.Now(); !client.Live(); {
		if time.Since(begun) > 10*time.Second || ctx.Err() != nil {
			return nil, errors.New("the key service does not tell changes")
		}
		time.Sleep(time.Millisecond)
	}
	return made, nil
}

func newParts(verifier tokenverify.Verifier, live func() bool) (*parts, error) {
	made := &parts{verifier: verifier, now: time.Now}
	var err error
	if made.hosts, err = ststoken.NewHosts("aws", nil, nil); err != nil {
		return nil, err
	}
	mapped, problems := identity.ParseFile([]byte(mappings))
	table, more := identity.NewTable(identity.Options{}, nil, mapped)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, fmt.Errorf("the mappings are wrong: %v", problems)
	}
	made.whole, err = authenticator.New(authenticator.Config{
		ClusterID: cluster, Hosts: made.hosts, Verifier: verifier, Live: live, Table: func() *identity.Table { return &table },
		Metrics: authenticator.NewMetrics(prometheus.NewRegistry()), Logger: quietly(),
	})
	return made, err
}

func authorities(file string) (*x509.CertPool, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading STS's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

func newTLSConfig() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }
