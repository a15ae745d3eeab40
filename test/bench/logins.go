// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/supervise"
)

const (
	// loginBlock is how many logins are made at one version before the other one's turn, and loginBlocks how many such
	// turns.
	loginBlock, loginBlocks = 50, 10
	// loginsDisturbed is how many are made while the VPC's process is killed, every loginKills.
	loginsDisturbed, loginKills = 200, time.Second
	// besideEnv names the programs of another version, which is measured in turns with this one.
	besideEnv = "MUSTER_BENCH_BESIDE"
)

// login is what logins at a cluster need.
type login struct {
	trial
	name   string
	client *http.Client
	url    string
	signer aws.Config
	made   int
}

// benchLogins measures requests to the API server, each with a token of IAM that nobody has seen before, in turns with
// another version; and once more while the process of the VPC is killed each second.
func benchLogins(ctx context.Context, bin string) error {
	sides := []*login{{name: "this version", trial: trial{bin: bin}}}
	if other := os.Getenv(besideEnv); other != "" {
		sides = append(sides, &login{name: "the one beside it", trial: trial{bin: other}})
	}
	for _, side := range sides {
		t, remove, err := newTrial(ctx, side.bin)
		if err != nil {
			return err
		}
		defer remove()
		side.trial = t
		if err := side.begin(ctx); err != nil {
			return err
		}
	}
	calm, disturbed := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range loginBlocks {
		for _, side := range sides {
			took, failed := side.logins(ctx, loginBlock)
			if failed != nil {
				return failed
			}
			calm[side.name] = append(calm[side.name], took...)
		}
	}
	failures := map[string]error{}
	for _, side := range sides {
		stop := side.keepKilling(ctx)
		disturbed[side.name], failures[side.name] = side.logins(ctx, loginsDisturbed)
		stop()
	}
	w := newTable()
	_, _ = fmt.Fprintln(w, "logins\tp50 ms\tp99 ms\tVPC's process killed: p50 ms\tp99 ms\tfailed\t")
	for _, side := range sides {
		a, b := calm[side.name], disturbed[side.name]
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t\n", side.name, millisecondsAt(a, 50), millisecondsAt(a, 99), millisecondsAt(b, 50), millisecondsAt(b, 99), loginsDisturbed-len(b))
		if err := failures[side.name]; err != nil {
			fmt.Printf("%s: %v\n", side.name, err)
		}
	}
	return w.Flush()
}

// millisecondsAt is a quantile of durations.
func millisecondsAt(all []time.Duration, percent int) string {
	if len(all) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(quantile(all, percent).Microseconds())/1000)
}

func (l *login) begin(ctx context.Context) error {
	if _, err := l.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	c, err := l.awsClient()
	if err != nil {
		return err
	}
	l.signer = aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(c.url), Credentials: credentials.NewStaticCredentialsProvider(c.keys[0].AccessKeyID, c.keys[0].SecretAccessKey, "")}
	cluster := l.state().Cluster("muster")
	var ports portplan.Ports
	raw, err := os.ReadFile(cluster.Ports())
	if err := errors.Join(err, json.Unmarshal(raw, &ports)); err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(cluster.PKI(), "cluster", "ca.pem"))
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	l.url = ports.Places().Published.URL() + "/api"
	l.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	_, err = l.logins(ctx, loginBlock) // which warms both ends up
	return err
}

// logins makes so many, one after the other, and returns how long those that succeeded took, and the first failure.
func (l *login) logins(ctx context.Context, n int) (took []time.Duration, failed error) {
	for range n {
		l.made++ // tokens of one second are the same, so each is of another second of the last minutes
		token, err := ekstoken.Sign(ctx, l.signer, "muster", time.Now().Add(-time.Duration(l.made)*time.Second))
		if err != nil {
			return took, err
		}
		began := time.Now()
		if err := l.login(ctx, token.Reveal()); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		took = append(took, time.Since(began))
	}
	return took, failed
}

func (l *login) login(ctx context.Context, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := l.client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, body)
	}
	return err
}

// keepKilling kills the VPC's process again and again, until the function that it returns is called.
func (l *login) keepKilling(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(loginKills)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			found, err := supervise.Find(l.state())
			if err != nil {
				continue
			}
			for _, p := range found {
				if strings.HasPrefix(p.Name, "vpc-") && !strings.Contains(p.Name, "egress") && !strings.Contains(p.Name, "balancer") {
					_ = syscall.Kill(p.PID, syscall.SIGKILL)
				}
			}
		}
	}()
	return func() { cancel(); <-ended }
}
