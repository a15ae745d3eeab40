// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/iamfault"
	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
)

// pods says of every root what it is told to.
type pods struct {
	mu  sync.Mutex
	err error
}

func (p *pods) Holds(identityservice.PodRoot) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pods) say(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func podWorld(t *testing.T) (*world, *pods) {
	t.Helper()
	p := &pods{}
	return newWorld(t, func(c *identityservice.Config) { c.Pods = p }), p
}

const (
	podUID    = "0d5b9f1c-3c0e-4c6c-9d3c-7a4f0b1d2e3f"
	podTrust  = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"pods.eks.amazonaws.com"},"Action":["sts:AssumeRole","sts:TagSession"]%s}]}`
	podName   = "web-6d4cf56db6-x7k2p"
	shortName = "eks-muster-web-6d4cf56d-" + podUID
)

func root() identityservice.PodRoot {
	return identityservice.PodRoot{Cluster: "muster", Namespace: "shop", Pod: podName, UID: podUID, ServiceAccount: "app", Association: "a-1", Grant: "x"}
}

func given(c identityservice.PodCredentials) signer {
	return signer{c.AccessKeyID, c.Secret.Reveal(), c.SessionToken}
}

func TestAPodGetsItsRole(t *testing.T) {
	w, _ := podWorld(t)
	w.role("app", fmt.Sprintf(podTrust, ""))
	got := must[identityservice.PodCredentials](w)(w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: root(), Role: *roleARN("app")}))
	who := must[*sts.GetCallerIdentityOutput](w)(w.sts(given(got)).GetCallerIdentity(t.Context(), nil))
	session := "arn:aws:sts::" + account + ":assumed-role/app/" + shortName
	if len(shortName) > 64 || *who.Arn != session || got.ARN != session || !strings.HasSuffix(got.RoleID, ":"+shortName) {
		t.Errorf("the pod is %s (%s, %s), want %s", *who.Arn, got.ARN, got.RoleID, session)
	}
	if left := time.Until(got.Expires); left < 6*time.Hour-time.Minute || left > 6*time.Hour {
		t.Errorf("the credentials last %s", left)
	}
	if last, ok := w.service.LastOfPod(podUID); !ok || last.ARN != session || !last.Expires.Equal(got.Expires) {
		t.Errorf("last: %+v, %v", last, ok)
	}
	if _, ok := w.service.LastOfPod("another"); ok {
		t.Error("another pod was given a session")
	}
	if strings.Contains(w.log.String(), got.Secret.Reveal()) || strings.Contains(w.log.String(), got.SessionToken) || !strings.Contains(w.log.String(), got.AccessKeyID) {
		t.Errorf("the log has a secret, or not the key:\n%s", w.log)
	}
}

// The conditions of a trust policy are asked for a pod, and again at each use.
func TestTrustPoliciesOfPods(t *testing.T) {
	for name, c := range map[string]struct {
		trust    string
		untagged bool
		want     string // in the cause; empty: given
	}{
		"EKS's":                    {fmt.Sprintf(podTrust, ""), false, ""},
		"another service":          {strings.ReplaceAll(fmt.Sprintf(podTrust, ""), "pods.eks", "ec2"), false, "does not let pods.eks.amazonaws.com do sts:AssumeRole"},
		"no sts:TagSession":        {trusting("Service", "pods.eks.amazonaws.com"), false, "does not let pods.eks.amazonaws.com do sts:TagSession"},
		"no tags are needed":       {trusting("Service", "pods.eks.amazonaws.com"), true, ""},
		"its namespace":            {fmt.Sprintf(podTrust, `,"Condition":{"StringEquals":{"aws:RequestTag/kubernetes-namespace":"shop"}}`), false, ""},
		"another namespace":        {fmt.Sprintf(podTrust, `,"Condition":{"StringEquals":{"aws:RequestTag/kubernetes-namespace":"bank"}}`), false, "does not let"},
		"its service account":      {fmt.Sprintf(podTrust, `,"Condition":{"StringEquals":{"aws:RequestTag/kubernetes-service-account":"app"}}`), false, ""},
		"its cluster":              {fmt.Sprintf(podTrust, `,"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:eks:`+region+`:`+account+`:cluster/muster"},"StringEquals":{"aws:SourceAccount":"`+account+`"}}`), false, ""},
		"another cluster":          {fmt.Sprintf(podTrust, `,"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:eks:`+region+`:`+account+`:cluster/other"}}`), false, "does not let"},
		"the cluster's tag":        {fmt.Sprintf(podTrust, `,"Condition":{"StringEquals":{"aws:RequestTag/eks-cluster-arn":"arn:aws:eks:`+region+`:`+account+`:cluster/muster"}}`), false, ""},
		"the pod":                  {fmt.Sprintf(podTrust, `,"Condition":{"StringLike":{"aws:RequestTag/kubernetes-pod-name":"web-*","aws:RequestTag/kubernetes-pod-uid":"`+podUID+`"}}`), false, ""},
		"tags, and there are none": {fmt.Sprintf(podTrust, `,"Condition":{"StringEquals":{"aws:RequestTag/kubernetes-namespace":"shop"}}`), true, "does not let"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := podWorld(t)
			w.role("app", c.trust)
			r := root()
			r.Untagged = c.untagged
			got, err := w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: r, Role: *roleARN("app")})
			checked := w.service.CheckPod(t.Context(), identityservice.PodRole{Root: r, Role: *roleARN("app")})
			if c.want == "" {
				if err != nil || checked != nil {
					t.Fatal(err, checked)
				}
				must[*sts.GetCallerIdentityOutput](w)(w.sts(given(got)).GetCallerIdentity(t.Context(), nil))
				return
			}
			var refused *awsfault.Error
			if !errors.As(err, &refused) || refused.Code != string(iamfault.AccessDenied) || refused.Cause == nil || !strings.Contains(refused.Cause.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if checked == nil || !strings.Contains(checked.Error(), c.want) {
				t.Errorf("explained as %v, want %q", checked, c.want)
			}
		})
	}
}

func TestNoRoleForAPod(t *testing.T) {
	w, _ := podWorld(t)
	w.role("app", fmt.Sprintf(podTrust, ""))
	for _, wrong := range []string{*roleARN("none"), "arn:aws:iam::" + account + ":role/path/app", "arn:aws:iam::" + account + ":user/app", "app", ""} {
		if _, err := w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: root(), Role: wrong}); err == nil {
			t.Errorf("a session of %q", wrong)
		}
		if err := w.service.CheckPod(t.Context(), identityservice.PodRole{Root: root(), Role: wrong}); err == nil {
			t.Errorf("%q trusts pods", wrong)
		}
	}
}

// A role of another account that lets EKS in lets in that of its own account: nobody there was asked about a cluster
// elsewhere.
func TestNoRoleOfAnotherAccountForAPod(t *testing.T) {
	w, _ := podWorld(t)
	far := own.Role{ID: "AROAABCDEFGHIJKLMNOPQ", Account: "111122223333", Path: "/", Name: "app", Trust: fmt.Sprintf(podTrust, ""), MaxSession: time.Hour, Created: time.Now()}
	if err := w.store.Create(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: root(), Role: far.ARN().String()}); code(err) == "" || err == nil {
		t.Errorf("%v", err)
	}
}

// A pod's session ends with what it was made of.
func TestThePodsSessionEnds(t *testing.T) {
	gone := errors.New("the association is gone")
	for name, c := range map[string]struct {
		end  func(*world, *pods)
		want string
	}{
		"pod or association": {func(_ *world, p *pods) { p.say(gone) }, "InvalidClientTokenId"},
		"not known yet":      {func(_ *world, p *pods) { p.say(fmt.Errorf("of the cluster: %w", identityservice.ErrNotReady)) }, "ServiceUnavailable"},
		"role": {func(w *world, _ *pods) {
			must[*iam.DeleteRoleOutput](w)(w.iam(w.admin()).DeleteRole(w.t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("app")}))
		}, "InvalidClientTokenId"},
		"trust": {func(w *world, _ *pods) {
			must[*iam.UpdateAssumeRolePolicyOutput](w)(w.iam(w.admin()).UpdateAssumeRolePolicy(w.t.Context(), &iam.UpdateAssumeRolePolicyInput{
				RoleName: aws.String("app"), PolicyDocument: aws.String(trusting("Service", "ec2.amazonaws.com")),
			}))
		}, "InvalidClientTokenId"},
		"time": {func(w *world, _ *pods) { w.move(6*time.Hour + time.Second) }, "ExpiredToken"},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := podWorld(t)
			w.role("app", fmt.Sprintf(podTrust, ""))
			w.role("next", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"`+*roleARN("app")+`"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`)
			got := must[identityservice.PodCredentials](w)(w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: root(), Role: *roleARN("app")}))
			next := must[*sts.AssumeRoleOutput](w)(w.sts(given(got)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("next"), RoleSessionName: aws.String("chained")}))
			must[*sts.GetCallerIdentityOutput](w)(w.sts(session(next.Credentials)).GetCallerIdentity(t.Context(), nil))
			c.end(w, p)
			_, err := w.sts(given(got)).GetCallerIdentity(t.Context(), nil)
			w.wants("its own session", err, c.want)
			_, err = w.sts(session(next.Credentials)).GetCallerIdentity(t.Context(), nil)
			w.wants("a session that was made with it", err, c.want)
		})
	}
}

func TestTargetRole(t *testing.T) {
	w, p := podWorld(t)
	w.role("app", fmt.Sprintf(podTrust, ""))
	const externalID = region + "/" + account + "/muster/shop/app"
	w.role("target", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"`+*roleARN("app")+`"},"Action":["sts:AssumeRole","sts:TagSession"],
"Condition":{"StringEquals":{"sts:ExternalId":"`+externalID+`","aws:PrincipalTag/kubernetes-namespace":"shop"}}}]}`)
	in := identityservice.PodRole{Root: root(), Role: *roleARN("app"), Target: *roleARN("target"), ExternalID: externalID}
	got := must[identityservice.PodCredentials](w)(w.service.AssumeForPod(t.Context(), in))
	who := must[*sts.GetCallerIdentityOutput](w)(w.sts(given(got)).GetCallerIdentity(t.Context(), nil))
	if want := "arn:aws:sts::" + account + ":assumed-role/target/" + shortName; *who.Arn != want || got.ARN != want {
		t.Errorf("the pod is %s, %s; want %s", *who.Arn, got.ARN, want)
	}
	if left := time.Until(got.Expires); left > time.Hour || left < 59*time.Minute {
		t.Errorf("chained credentials last %s", left)
	}
	p.say(errors.New("gone"))
	_, err := w.sts(given(got)).GetCallerIdentity(t.Context(), nil)
	w.wants("after the end", err, "InvalidClientTokenId")
	p.say(nil)
	for name, change := range map[string]func(*identityservice.PodRole){
		"another external id": func(r *identityservice.PodRole) { r.ExternalID = "eu-west-1/x" },
		"no external id":      func(r *identityservice.PodRole) { r.ExternalID = "" },
		"no tags":             func(r *identityservice.PodRole) { r.Root.Untagged = true },
		"no such target":      func(r *identityservice.PodRole) { r.Target = *roleARN("none") },
		"another namespace":   func(r *identityservice.PodRole) { r.Root.Namespace = "bank" },
	} {
		other := in
		change(&other)
		_, err := w.service.AssumeForPod(t.Context(), other)
		if refused, ok := errors.AsType[*awsfault.Error](err); !ok || refused.Code != string(iamfault.AccessDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A session policy of an association narrows what the role may do.
func TestPolicyOfAnAssociation(t *testing.T) {
	w, _ := podWorld(t)
	w.role("app", fmt.Sprintf(podTrust, ""))
	must[*iam.AttachRolePolicyOutput](w)(w.iam(w.admin()).AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: aws.String("app"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AdministratorAccess")}))
	r := root()
	r.Untagged = true
	got := must[identityservice.PodCredentials](w)(w.service.AssumeForPod(t.Context(), identityservice.PodRole{
		Root: r, Role: *roleARN("app"), Policy: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:ListRoles","Resource":"*"}]}`,
	}))
	must[*iam.ListRolesOutput](w)(w.iam(given(got)).ListRoles(t.Context(), nil))
	_, err := w.iam(given(got)).ListUsers(t.Context(), nil)
	w.wants("what the policy leaves out", err, "AccessDenied")
}

// Where nobody knows pods no session of a pod is good.
func TestWithoutPods(t *testing.T) {
	w := newWorld(t, nil)
	w.role("app", fmt.Sprintf(podTrust, ""))
	got := must[identityservice.PodCredentials](w)(w.service.AssumeForPod(t.Context(), identityservice.PodRole{Root: root(), Role: *roleARN("app")}))
	_, err := w.sts(given(got)).GetCallerIdentity(t.Context(), nil)
	w.wants("a session of a pod", err, "InvalidClientTokenId")
}

func TestCheckWebIdentity(t *testing.T) {
	w, _ := podWorld(t)
	const issuer, subject = "https://oidc.example/id/A", "system:serviceaccount:shop:app"
	check := func(role, issuer, subject, audience string) error {
		return w.service.CheckWebIdentity(t.Context(), role, issuer, subject, audience)
	}
	if err := check(*roleARN("app"), issuer, subject, "sts.amazonaws.com"); err == nil || !strings.Contains(err.Error(), "there is no role") {
		t.Errorf("%v", err)
	}
	w.role("app", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::`+account+`:oidc-provider/oidc.example/id/A"},
"Action":"sts:AssumeRoleWithWebIdentity","Condition":{"StringEquals":{"oidc.example/id/A:sub":"`+subject+`","oidc.example/id/A:aud":"sts.amazonaws.com"}}}]}`)
	if err := check(*roleARN("app"), issuer, subject, "sts.amazonaws.com"); err == nil || !strings.Contains(err.Error(), "IAM has no OpenID Connect provider for "+issuer) {
		t.Errorf("%v", err)
	}
	must[*iam.CreateOpenIDConnectProviderOutput](w)(w.iam(w.admin()).CreateOpenIDConnectProvider(t.Context(), &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String(issuer), ClientIDList: []string{"sts.amazonaws.com"},
	}))
	if err := check(*roleARN("app"), issuer, subject, "sts.amazonaws.com"); err != nil {
		t.Errorf("%v", err)
	}
	for name, err := range map[string]error{
		"another subject":  check(*roleARN("app"), issuer, subject+"2", "sts.amazonaws.com"),
		"another audience": check(*roleARN("app"), issuer, subject, "other"),
		"another issuer":   check(*roleARN("app"), issuer+"B", subject, "sts.amazonaws.com"),
		"not a role":       check("app", issuer, subject, "sts.amazonaws.com"),
	} {
		if err == nil {
			t.Errorf("%s is let in", name)
		}
	}
}
