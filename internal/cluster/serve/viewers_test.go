// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cluster/controlsocket"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
	"muster.dev/muster/internal/iam/viewer"
)

const (
	ownHost   = "identity.internal:4566"
	ownRegion = "eu-west-1"
)

// nobodysMachines are instances of an account without machines.
type nobodysMachines struct{}

func (nobodysMachines) Lookup(string) (identityservice.Instance, bool) {
	return identityservice.Instance{}, false
}

// looking is a service with an account, and the key of its first user.
func looking(t *testing.T) (commands, ststest.Key) {
	t.Helper()
	dir, store := t.TempDir(), identityservicetest.NewMemory()
	if _, err := identityservice.First(t.Context(), store, identityservice.DefaultAccount, filepath.Join(dir, "credentials"), time.Now()); err != nil {
		t.Fatal(err)
	}
	sealer, err := identityservice.OpenSealer(filepath.Join(dir, "keys"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	identities, err := identityservice.New(identityservice.Config{Store: store, Sealer: sealer, Instances: nobodysMachines{}, Region: ownRegion, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	front, err := identities.Front(awsfront.Config{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	admin, _ := state.User(identityservice.DefaultAccount, identityservice.FirstUserName)
	key := state.KeysOf(admin.ID)[0]
	s := newService(t)
	t.Cleanup(answering(s, nil, &viewers{identities, front, "https://" + ownHost}))
	return commands{s}, ststest.Key{ID: key.ID, Secret: key.Secret.Reveal()}
}

// A token opens one run of the console, for as long as it is good, and nothing else does.
func TestProveViewer(t *testing.T) {
	c, key := looking(t)
	here, now := viewer.Audience("here"), time.Now()
	for name, test := range map[string]struct {
		audience, token string
		fails           string
	}{
		"her own":                       {here, ststest.TokenFor(t, key, here, ownHost, ownRegion, now), ""},
		"nearly too old":                {here, ststest.TokenFor(t, key, here, ownHost, ownRegion, now.Add(-14*time.Minute)), ""},
		"a clock that is ahead":         {here, ststest.TokenFor(t, key, here, ownHost, ownRegion, now.Add(4*time.Minute)), ""},
		"of another run of the console": {here, ststest.TokenFor(t, key, viewer.Audience("there"), ownHost, ownRegion, now), "signature"},
		"of a cluster":                  {here, ststest.TokenFor(t, key, "home", ownHost, ownRegion, now), "signature"},
		"for a cluster as the audience": {"home", ststest.TokenFor(t, key, "home", ownHost, ownRegion, now), "is not the audience of a console"},
		"for no audience":               {"", ststest.TokenFor(t, key, "home", ownHost, ownRegion, now), "is not the audience of a console"},
		"too old":                       {here, ststest.TokenFor(t, key, here, ownHost, ownRegion, now.Add(-16*time.Minute)), "expired"},
		"much ahead":                    {here, ststest.TokenFor(t, key, here, ownHost, ownRegion, now.Add(6*time.Minute)), "not yet valid"},
		"of AWS's STS":                  {here, ststest.TokenFor(t, key, here, ststest.Host, ownRegion, now), "host"},
		"of another secret":             {here, ststest.TokenFor(t, ststest.Key{ID: key.ID, Secret: "guessed"}, here, ownHost, ownRegion, now), "signature"},
		"of an unknown key":             {here, ststest.TokenFor(t, ststest.Key{ID: "AKIA0000000000000000", Secret: key.Secret}, here, ownHost, ownRegion, now), "key"},
		"with a session that is not":    {here, ststest.TokenFor(t, ststest.Key{ID: key.ID, Secret: key.Secret, Session: "x"}, here, ownHost, ownRegion, now), ""},
		"nothing":                       {here, "", "prefix"},
		"very long":                     {here, "k8s-aws-v1." + strings.Repeat("a", 30<<10), "size"},
		"bytes":                         {here, "k8s-aws-v1.\x00\xff", "encoding"},
	} {
		who, err := c.ProveViewer(t.Context(), viewer.Proof{Audience: test.audience, Token: test.token})
		good := test.fails == "" && name != "with a session that is not"
		switch {
		case good != (err == nil), good != (who.ARN == "arn:aws:iam::"+identityservice.DefaultAccount+":user/"+identityservice.FirstUserName), good && who.AccessKeyID != key.ID:
			t.Errorf("%s: %+v, %v", name, who, err)
		case err != nil && (!errors.Is(err, controlsocket.ErrRefused) || !strings.Contains(err.Error(), test.fails)):
			t.Errorf("%s: %v, want a refusal with %q", name, err, test.fails)
		case err != nil && strings.Contains(err.Error(), key.Secret):
			t.Errorf("%s: the secret is in %v", name, err)
		}
	}
}

// Nobody has rights by a key that ended, by the key of another, or by asking too much.
func TestDecideViewer(t *testing.T) {
	c, key := looking(t)
	own := viewer.Viewer{ARN: "arn:aws:iam::" + identityservice.DefaultAccount + ":user/" + identityservice.FirstUserName, AccessKeyID: key.ID}
	change := func(by func(*viewer.Viewer)) viewer.Viewer {
		who := own
		by(&who)
		return who
	}
	one := []viewer.Question{{Action: "eks:DescribeCluster", Resource: "*"}}
	for name, test := range map[string]struct {
		who       viewer.Viewer
		questions []viewer.Question
		action    string
		fails     string
	}{
		"the administrator":    {own, one, "CreateCluster", ""},
		"no questions":         {own, nil, "CreateCluster", ""},
		"nobody":               {viewer.Viewer{}, one, "CreateCluster", "InvalidClientTokenId"},
		"a key that is not":    {change(func(v *viewer.Viewer) { v.AccessKeyID = "AKIA0000000000000000" }), one, "CreateCluster", "InvalidClientTokenId"},
		"another's key":        {change(func(v *viewer.Viewer) { v.ARN += "x" }), one, "CreateCluster", "is not one of"},
		"an invented session":  {change(func(v *viewer.Viewer) { v.SessionToken = "x" }), one, "CreateCluster", "InvalidClientTokenId"},
		"too many questions":   {own, make([]viewer.Question, 10_001), "DeleteCluster", "at most 10000"},
		"what makes no object": {own, make([]viewer.Question, 10_001), "DescribeCluster", "at most 10000"},
	} {
		answers, err := c.DecideViewer(t.Context(), viewer.Decision{Viewer: test.who, Questions: test.questions})
		if test.fails == "" && (err != nil || len(answers) != len(test.questions) || len(answers) > 0 && answers[0] != (viewer.Refusal{})) {
			t.Errorf("%s: %+v, %v", name, answers, err)
		}
		if test.fails != "" && (!errors.Is(err, controlsocket.ErrRefused) || !strings.Contains(err.Error(), test.fails) || answers != nil) {
			t.Errorf("%s: %+v, %v", name, answers, err)
		}
		refusal, err := c.RequestOfViewer(t.Context(), viewer.Request{Viewer: test.who, Action: test.action, Input: []byte(`{"name":"blue"}`)})
		if refused := errors.Is(err, controlsocket.ErrRefused); refused != (test.fails != "") || !refused && refusal.Code == "" { // no EKS is registered here
			t.Errorf("%s: %s: %+v, %v", name, test.action, refusal, err)
		}
	}
	if _, err := c.RequestOfViewer(t.Context(), viewer.Request{Viewer: own, Action: "CreateCluster", Input: []byte(`{"name":1.5}`)}); !errors.Is(err, controlsocket.ErrRefused) {
		t.Errorf("a bad input: %v", err)
	}
	answers, err := c.DecideViewer(t.Context(), viewer.Decision{Viewer: own, Questions: []viewer.Question{{Action: "", Resource: ""}, {Action: "eks:\x00", Resource: strings.Repeat("*", 10_000)}}})
	if err == nil && len(answers) != 2 {
		t.Errorf("odd questions: %+v", answers)
	}
	for _, a := range answers {
		if a != (viewer.Refusal{}) && a.Status != http.StatusForbidden {
			t.Errorf("odd questions: %+v", a)
		}
	}
}

// Before the account answers, and after, nobody has rights.
func TestViewersOfNoAccount(t *testing.T) {
	c := commands{newService(t)}
	_, prove := c.ProveViewer(t.Context(), viewer.Proof{Audience: viewer.Audience("a"), Token: "t"})
	_, decide := c.DecideViewer(t.Context(), viewer.Decision{})
	_, request := c.RequestOfViewer(t.Context(), viewer.Request{Action: "CreateCluster"})
	for what, err := range map[string]error{"prove": prove, "decide": decide, "request": request} {
		if !errors.Is(err, errNoIdentities) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
