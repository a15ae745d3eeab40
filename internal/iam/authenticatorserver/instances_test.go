// SPDX-License-Identifier: Apache-2.0

package authenticatorserver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/facts/ec2instances"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// Strangers can name their sessions like instances: what an account may ask EC2 is not theirs to use up.
func TestAnAuthenticatorAsksEC2OnlyAboutThoseWhomAnEntryMakesNodes(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLEEXAMPLE12")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "example")
	var asked atomic.Int64
	ec2 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, `<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><reservationSet/></DescribeInstancesResponse>`)
	}))
	t.Cleanup(ec2.Close)
	const instance = "i-0123456789abcdef0"
	node, stranger := ststest.Session("nodes", instance, 1), ststest.Session("strangers", instance, 2)
	mappings := filepath.Join(t.TempDir(), "mappings.yaml")
	if err := os.WriteFile(mappings, []byte("mapRoles:\n- {rolearn: 'arn:aws:iam::111122223333:role/nodes', username: 'system:node:{{EC2PrivateDNSName}}', groups: [system:nodes]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, state := authenticatorConfigOf(t, stsOf(t, ststest.New(t, node, stranger))+
		"mapping: {file: "+mappings+", fileOnly: true}\nec2: {region: eu-west-1, endpoint: '"+ec2.URL+"'}\n")
	s := runningAuthenticator(t, c)
	eventually(t, "it is ready", func() bool { status, _ := health(t, s, "/readyz"); return status == http.StatusOK })
	for _, tc := range []struct {
		who  string
		key  ststest.Key
		want int64
	}{{"a stranger", stranger, 0}, {"a node's role", node, 1}} {
		if status, _ := reviewOf(t, s, state, ststest.Token(t, tc.key, "demo", time.Now())); status != http.StatusForbidden || asked.Load() != tc.want {
			t.Errorf("%s: %d, EC2 was asked %d times; want 403 and %d", tc.who, status, asked.Load(), tc.want)
		}
	}
}

// instancesOfEC2 looks up instances as the command does.
func instancesOfEC2(ctx context.Context, from authenticatorconfig.EC2, onCall func(), logger *slog.Logger) (Describe, error) {
	lookup, err := ec2instances.NewLookup(ctx, ec2instances.LookupConfig{Region: from.Region, Endpoint: from.Endpoint, OnCall: onCall, Logger: logger})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, ids []string) (map[string]tokenverify.Instance, error) {
		described, err := lookup.Describe(ctx, ids)
		found := map[string]tokenverify.Instance{}
		for id, d := range described {
			found[id] = tokenverify.Instance(d)
		}
		return found, err
	}, nil
}
