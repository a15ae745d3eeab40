// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/ststoken"
)

const (
	node     = "i-0123456789abcdef0"
	nodeName = "ip-192-168-64-11.ec2.internal"
)

func holds(t *testing.T, file string, texts ...string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", file, info.Mode(), err)
	}
	for _, text := range texts {
		if !strings.Contains(string(raw), text) {
			t.Errorf("%s does not hold %q", file, text)
		}
	}
}

// demo is the cluster whose authenticator asks.
const demo = "demo"

// wish is a request to presign, and how it differs from a token's.
type wish struct {
	cluster, host, region, service, query, method string
	headers                                       map[string]string
	without                                       bool // the cluster's name
	at                                            time.Time
}

// sign presigns a request as the tools do, and returns the query as it was signed.
func (w *world) sign(s signer, wish wish) (host, query string) {
	w.t.Helper()
	or := func(a *string, other string) {
		if *a == "" {
			*a = other
		}
	}
	or(&wish.cluster, demo)
	or(&wish.host, "sts.us-east-1.amazonaws.com")
	or(&wish.region, "us-east-1")
	or(&wish.service, "sts")
	or(&wish.method, http.MethodGet)
	or(&wish.query, "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60")
	if wish.at.IsZero() {
		wish.at = w.now()
	}
	r, err := http.NewRequestWithContext(w.t.Context(), wish.method, "https://"+wish.host+"/?"+wish.query, http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	if !wish.without {
		r.Header.Set(ststoken.ClusterHeader, wish.cluster)
	}
	for name, value := range wish.headers {
		r.Header.Set(name, value)
	}
	signed, _, err := v4.NewSigner().PresignHTTP(w.t.Context(), aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret, SessionToken: s.token},
		r, sigv4.EmptyPayload, wish.service, wish.region, wish.at)
	if err != nil {
		w.t.Fatal(err)
	}
	_, query, _ = strings.Cut(signed, "/?")
	return wish.host, query
}

// verify asks as demo's authenticator who made a request.
func (w *world) verify(host, query string) (keyservice.Maker, string) {
	w.t.Helper()
	got, err := w.service.Verify(w.t.Context(), demo, host, query)
	if no, ok := errors.AsType[*keyservice.Unknown](err); ok {
		if got != (keyservice.Maker{}) {
			w.t.Errorf("who is refused is %+v", got)
		}
		return got, strings.TrimPrefix(no.Rule+": ", ": ") + no.Code + ": " + no.Reason
	}
	if err != nil {
		return got, err.Error()
	}
	return got, ""
}

func (w *world) resolve(s signer) (keyservice.Maker, string) {
	w.t.Helper()
	return w.verify(w.sign(s, wish{}))
}

func (w *world) says(what, got, want string) {
	w.t.Helper()
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestVerifyATokenOfAUser(t *testing.T) {
	w := newWorld(t, nil)
	host, query := w.sign(w.admin(), wish{})
	for range 3 { // a token is good as often as it is shown
		got, no := w.verify(host, query)
		if no != "" {
			t.Fatal(no)
		}
		if got.UserID != w.key.UserID || got.ARN != "arn:aws:iam::000000000000:user/admin" || got.Account != account || got.Instance != nil || got.SessionName != "" ||
			!got.ValidUntil.After(w.now().Add(14*time.Minute)) || got.ValidUntil.After(w.now().Add(15*time.Minute)) {
			t.Errorf("%+v", got)
		}
	}
	used, err := w.iam(w.admin()).GetAccessKeyLastUsed(t.Context(), &iam.GetAccessKeyLastUsedInput{AccessKeyId: &w.key.ID})
	if err != nil || used.AccessKeyLastUsed.LastUsedDate == nil {
		t.Errorf("a token is no use of its key: %+v, %v", used, err)
	}
	_, no := w.resolve(signer{id: "AKIAAAAAAAAAAAAAAAAA", secret: "x"})
	w.says("an unknown key", no, "InvalidClientTokenId: there is no such access key")
}

// Whatever an authenticator sends, it hears about a token of its own cluster, or that it is none.
func TestWhatIsNoTokenOfTheClusterIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	admin, alice := w.admin(), w.user("alice")
	const mismatch = "signature: SignatureDoesNotMatch: a signature that key "
	for _, test := range []struct {
		name, want string
		by         signer
		wish       wish
	}{
		{"for another cluster", mismatch, admin, wish{cluster: "other"}},
		{"for a cluster whose name begins like it", mismatch, admin, wish{cluster: "demo2"}},
		{"for the cluster in capitals", mismatch, admin, wish{cluster: "DEMO"}},
		{"for no cluster", "signed headers: IncompleteSignature: \"host\"", admin, wish{without: true}},
		{"another header besides", "signed headers: IncompleteSignature", admin, wish{headers: map[string]string{"X-Other": "a"}}},
		{"by another secret", mismatch, signer{id: admin.id, secret: alice.secret}, wish{}},
		{"with another's session", "InvalidClientTokenId", signer{admin.id, admin.secret, "AQAAAAA"}, wish{}},
		{"for POST", mismatch, admin, wish{method: http.MethodPost}},
		{"for IAM", "service: IncompleteSignature: \"iam\"", admin, wish{service: "iam"}},
		{"another call", "action: IncompleteSignature: \"AssumeRole\"", admin, wish{query: "Action=AssumeRole&Version=2011-06-15&X-Amz-Expires=60"}},
		{"a call with more", "parameter: IncompleteSignature: \"RoleArn\"", admin, wish{query: "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=60&RoleArn=x"}},
		{"good for a week", "expires: IncompleteSignature", admin, wish{query: "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Expires=604800"}},
		{"of a quarter of an hour ago", "expired: RequestExpired", admin, wish{at: time.Now().Add(-15 * time.Minute)}},
		{"of yesterday", "expired: RequestExpired", admin, wish{at: time.Now().Add(-24 * time.Hour)}},
		{"of the future", "not yet valid: RequestExpired", admin, wish{at: time.Now().Add(6 * time.Minute)}},
		{"of a region that is none", "signature: IncompleteSignature: credential", admin, wish{region: strings.Repeat("a", 64)}},
		{"of a region in capitals", "signature: IncompleteSignature: credential", admin, wish{region: "US_EAST"}},
	} {
		_, no := w.verify(w.sign(test.by, test.wish))
		w.says(test.name, no, test.want)
	}
	host, query := w.sign(admin, wish{})
	for _, test := range []struct{ name, want, host, query string }{
		{"nothing", "parameter", "", ""},
		{"another host", mismatch, "sts.eu-west-1.amazonaws.com", query},
		{"no host", mismatch, "", query},
		{"a host that brings a header along", mismatch, host + "\nx-k8s-aws-id:demo", query},
		{"a parameter twice", "duplicate parameter", host, query + "&Action=GetCallerIdentity"},
		{"a parameter in another spelling", "duplicate parameter", host, query + "&action=GetCallerIdentity"},
		{"a path in the host", mismatch, host + "/", query},
		{"an escape in another spelling", "parameter value", host, strings.Replace(query, "%2F", "%2f", 1)},
		{"a cut signature", "signature", host, query[:len(query)-1]},
		{"a fragment", "parameter value", host, query + "#"},
		{"a huge query", "size", host, query + "&" + strings.Repeat("x", 4096)},
		{"a huge host", "size", strings.Repeat("h", 1<<20), query},
		{"zeros", "parameter", host, strings.Repeat("\x00", 100)},
	} {
		_, no := w.verify(test.host, test.query)
		w.says(test.name, no, test.want)
		for _, secret := range []string{admin.secret, query} {
			if strings.Contains(no, secret) {
				t.Errorf("%s: the refusal holds a secret: %s", test.name, no)
			}
		}
	}
	if _, err := w.service.Verify(t.Context(), "", host, query); err == nil {
		t.Error("a token is good for no cluster")
	}
	if got, no := w.verify(host, query); no != "" || got.UserID != w.key.UserID {
		t.Errorf("the good one afterwards: %+v %s", got, no)
	}
}

func TestRoleCredentialsOfAnInstance(t *testing.T) {
	w := newWorld(t, nil)
	ctx := t.Context()
	credentials := func() (keyservice.RoleCredentials, string) {
		got, err := w.service.RoleCredentials(ctx, node)
		if err != nil {
			return got, err.Error()
		}
		return got, ""
	}
	_, no := credentials()
	w.says("no instance", no, "there is no instance")
	w.instances.set(node, instance{"", nodeName, demo})
	_, no = credentials()
	w.says("no profile", no, "has no instance profile")
	w.instances.set(node, instance{"none", nodeName, demo})
	_, no = credentials()
	w.says("a profile that is not there", no, "does not exist")
	w.instances.set(node, instance{"muster-node", "", demo})
	_, no = credentials()
	w.says("no name yet", no, "has no private DNS name")
	w.instances.set(node, instance{"muster-node", nodeName, demo})

	first, no := credentials()
	w.says("all is there", no, "")
	if first.RoleName != "muster-node" || first.Expiration.Sub(w.now()) < 5*time.Hour || !strings.HasPrefix(first.AccessKeyID, "ASIA") {
		t.Errorf("%+v", first)
	}
	again, _ := credentials()
	if again != first {
		t.Error("other credentials though the first are good")
	}
	s := signer{first.AccessKeyID, first.SecretAccessKey, first.SessionToken}
	got, no := w.resolve(s)
	w.says("its credentials", no, "")
	if got.Instance == nil || got.Instance.ID != node || got.Instance.PrivateDNSName != nodeName || got.SessionName != node ||
		got.ARN != "arn:aws:sts::000000000000:assumed-role/muster-node/"+node || !strings.HasPrefix(got.UserID, "AROA") {
		t.Errorf("%+v", got)
	}
	w.move(5*time.Hour + time.Minute)
	renewed, _ := credentials()
	if renewed.AccessKeyID == first.AccessKeyID {
		t.Error("the same credentials less than an hour before their end")
	}
	w.move(-5*time.Hour - time.Minute)

	// A session that says it is the instance, and is not, never passes for it.
	admin := w.iam(w.admin())
	if _, err := admin.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("muster-node"), PolicyDocument: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com","AWS":"000000000000"},"Action":"sts:AssumeRole"}]}`)}); err != nil {
		t.Fatal(err)
	}
	person := must[*sts.AssumeRoleOutput](w)(w.sts(w.admin()).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: roleARN("muster-node"), RoleSessionName: aws.String("person")}))
	if got, no := w.resolve(session(person.Credentials)); no != "" || got.Instance != nil {
		t.Errorf("%+v %s", got, no)
	}
	// A session that was made with the instance's credentials ends with the instance, and the stream does not name such
	// a session: it is not remembered for long.
	w.role("next", trusting("AWS", *roleARN("muster-node")))
	chained := must[*sts.AssumeRoleOutput](w)(w.sts(s).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: roleARN("next"), RoleSessionName: aws.String("chained")}))
	if got, no := w.resolve(session(chained.Credentials)); no != "" || got.Instance != nil || got.ValidUntil.After(w.now().Add(time.Second)) {
		t.Errorf("%+v %s", got, no)
	}
	// Each says for which cluster its machine was launched, as it is now; a person's session does not.
	for cluster, want := range map[string]identity.Machine{demo: {ID: node, Cluster: demo}, "other": {ID: node, Cluster: "other"}, "": {ID: node}} {
		w.instances.set(node, instance{"muster-node", nodeName, cluster})
		for name, of := range map[string]signer{"its own": s, "a role that it assumed": session(chained.Credentials)} {
			if got, no := w.resolve(of); no != "" || got.Machine == nil || *got.Machine != want {
				t.Errorf("%s: %+v %s, want %+v", name, got.Machine, no, want)
			}
		}
	}
	w.instances.set(node, instance{"muster-node", nodeName, demo})
	if got, no := w.resolve(session(person.Credentials)); no != "" || got.Machine != nil {
		t.Errorf("a person has the machine %+v %s", got.Machine, no)
	}

	w.instances.set(node, instance{"other", nodeName, demo})
	_, no = w.resolve(s)
	w.says("another profile", no, "does not carry the role")
	w.instances.set(node, instance{})
	_, no = w.resolve(s)
	w.says("no instance any more", no, "does not exist any more")
	_, no = w.resolve(session(chained.Credentials))
	w.says("a chain from it", no, "does not exist any more")
	w.instances.set(node, instance{"muster-node", nodeName, demo})
	_, no = w.resolve(s)
	w.says("the instance again", no, "")
	if _, err := admin.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String("muster-node"), RoleName: aws.String("muster-node")}); err != nil {
		t.Fatal(err)
	}
	_, no = w.resolve(s)
	w.says("the role is out of the profile", no, "does not carry the role")
	_, no = credentials()
	w.says("credentials without a role", no, "carries no role")
	if _, err := admin.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String("muster-node"), RoleName: aws.String("muster-node")}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("muster-node"), PolicyDocument: aws.String(trusting("AWS", account))}); err != nil {
		t.Fatal(err)
	}
	_, no = credentials()
	w.says("a role that does not trust EC2", no, "does not let ec2.amazonaws.com assume it")
	_, no = w.resolve(s) // or the machine would go on for hours of which everybody is told that it is not let in
	w.says("credentials from before", no, "does not let ec2.amazonaws.com assume it")
	_, no = w.resolve(session(chained.Credentials))
	w.says("a chain from them", no, "does not let ec2.amazonaws.com assume it")
	_, no = w.resolve(session(person.Credentials))
	w.says("a session of the role that is no instance's", no, "")
}

// FuzzVerify asks of every request that it does no harm, and that of all that there are one is a token of the cluster.
func FuzzVerify(f *testing.F) {
	w := newWorld(f, nil)
	host, query := w.sign(w.admin(), wish{})
	f.Add(host, query)
	for _, other := range []wish{{cluster: "other"}, {without: true}} {
		h, q := w.sign(w.admin(), other)
		f.Add(h, q)
	}
	f.Add("", "")
	f.Add(host+"\n", strings.ToLower(query))
	f.Fuzz(func(t *testing.T, h, q string) {
		m, err := w.service.Verify(t.Context(), demo, h, q)
		if _, ok := errors.AsType[*keyservice.Unknown](err); err != nil && !ok {
			t.Fatalf("%q %q: %v", h, q, err)
		}
		if err == nil && (h != host || q != query) {
			t.Fatalf("%q %q is a token of %s", h, q, m.ARN)
		}
	})
}
