// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	aliceARN = "arn:aws:iam::" + iamAccount + ":user/alice"
	roleARN  = "arn:aws:iam::" + iamAccount + ":role/team/developers"
)

// unmappedUser makes a user, whom the cluster knows nothing of: the API server says Unauthorized, as it does whatever
// the reason is, and the authenticator's log and `muster auth check` say why.
func (w *iam) unmappedUser(p *people) {
	p.alice = w.user("alice")
	out, err := w.aws(w.as(p.alice), "sts", "get-caller-identity", "--query", "Arn", "--output", "text")
	if err != nil || out != aliceARN {
		w.t.Fatalf("STS takes alice for %q: %v", out, err)
	}
	if out, err := w.aws(w.as(p.alice), "iam", "create-user", "--user-name", "mallory"); err == nil || !strings.Contains(err.Error(), "AccessDenied") || !strings.Contains(err.Error(), "not authorized to perform: iam:CreateUser") {
		w.t.Errorf("alice may make users: %s, %v", out, err)
	}
	if out, err := w.kubectlAs(w.as(p.alice), p.kubectl, "get", "pods"); err == nil || !unauthorized(err) {
		w.t.Errorf("alice is not refused: %s, %v", out, err)
	}
	why := w.refused("alice is refused", w.token(p.alice, "muster"), 403, "no-entry")
	if !strings.Contains(why.Saw, "no entry names "+aliceARN) || !strings.Contains(why.Fix, "make an access entry for it") {
		w.t.Errorf("the authenticator says %+v", why)
	}
	log, _ := w.muster("logs", "authenticator", "--tail", "50")
	if !anyLine(log, `msg="access denied"`, "arn="+aliceARN, "rule=no-entry", "no entry names", "fix=") {
		w.t.Errorf("the log does not say why alice is refused:\n%s", log)
	}
	out, talk, err := w.try("auth", "check", aliceARN)
	if err == nil || !strings.Contains(out, aliceARN+" is not let in: no entry names "+aliceARN) {
		w.t.Errorf("muster auth check says %v:\n%s%s", err, out, talk)
	}
	w.t.Logf("muster auth check:\n%s", out)
}

// anyLine reports whether a line has all parts.
func anyLine(text string, parts ...string) bool {
lines:
	for line := range strings.Lines(text) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue lines
			}
		}
		return true
	}
	return false
}

func (w *iam) entryLetsIn(p *people) {
	w.mustKubectl("create", "namespace", "team")
	w.apply(`apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: alice}
spec:
  principalARN: ` + aliceARN + `
  accessPolicies:
  - policyARN: arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy
    scope: {type: namespace, namespaces: [team]}
`)
	w.becomes(p.alice, aliceARN)
	w.eventually("alice may edit her namespace", func() error {
		_, err := w.kubectlAs(w.as(p.alice), p.kubectl, "-n", "team", "create", "configmap", "hers", "--from-literal=a=b")
		return err
	})
	if _, err := w.kubectlAs(w.as(p.alice), p.kubectl, "-n", "default", "get", "pods"); err == nil || !strings.Contains(err.Error(), `User "`+aliceARN+`" cannot list resource "pods"`) {
		w.t.Errorf("she may see another namespace: %v", err)
	}
	if out, err := w.kubectlAs(w.as(p.alice), p.kubectl, "-n", "team", "auth", "can-i", "create", "rolebindings"); strings.TrimSpace(out) != "no" {
		w.t.Errorf("she may bind roles, which Edit does not allow: %s %v", out, err)
	}
	if out, err := w.kubectl("get", "accessentry", "alice", "-o", `jsonpath={range .status.conditions[*]}{.type}={.status} {end}`); err != nil || !strings.Contains(out, "PoliciesApplied=True") {
		w.t.Errorf("the entry's conditions are %q: %v", out, err)
	}
	if out, _ := w.muster("auth", "check", aliceARN); !strings.Contains(out, "becomes the user "+aliceARN) || !strings.Contains(out, "AccessEntry alice") {
		w.t.Errorf("muster auth check says:\n%s", out)
	}
}

// assumedRole comes by a role whose ARN has a path, which the original never matches.
func (w *iam) assumedRole(p *people) {
	w.mustAWS(nil, "iam", "create-role", "--path", "/team/", "--role-name", "developers", "--assume-role-policy-document",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "`+aliceARN+`"}, "Action": "sts:AssumeRole"}]}`)
	w.apply(`apiVersion: access.muster.dev/v1alpha1
kind: AccessEntry
metadata: {name: developers}
spec:
  principalARN: ` + roleARN + `
  kubernetesGroups: [developers]
`)
	out, err := w.aws(w.as(p.alice), "sts", "assume-role", "--role-arn", roleARN, "--role-session-name", "work",
		"--query", "[Credentials.AccessKeyId, Credentials.SecretAccessKey, Credentials.SessionToken]", "--output", "text")
	fields := strings.Fields(out)
	if err != nil || len(fields) != 3 {
		w.t.Fatalf("assuming the role: %d fields, %v", len(fields), err)
	}
	session := "arn:aws:sts::" + iamAccount + ":assumed-role/developers/"
	p.session = keys{fields[0], fields[1], fields[2]}
	w.becomes(p.session, session+"work")
	// And by the plugin, which assumes the role itself.
	w.muster("kubeconfig", "--iam", "--role-arn", roleARN, "--kubeconfig", p.kubectl+".role")
	out, err = w.kubectlAs(w.as(p.alice), p.kubectl+".role", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if err != nil || !strings.HasPrefix(out, session) || !strings.Contains(out, `"developers"`) {
		w.t.Errorf("by --role-arn she is %q: %v", out, err)
	}
	if _, err := w.aws(w.as(p.alice), "sts", "assume-role", "--role-arn", strings.Replace(roleARN, "team/developers", "muster-node-muster", 1), "--role-session-name", "work"); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		w.t.Errorf("alice is not kept from the role of nodes: %v", err)
	}
}

// inactiveKey ends a token and comes back: at the authenticator first, in the cluster when the API server has
// forgotten.
func (w *iam) inactiveKey(p *people) {
	token := w.token(p.alice, "muster")
	w.believed(token, aliceARN)
	w.mustAWS(nil, "iam", "update-access-key", "--user-name", "alice", "--access-key-id", p.alice.AccessKeyID, "--status", "Inactive")
	why := w.refused("the token of an inactive key is refused", token, 403, "access-key")
	if !strings.Contains(strings.ToLower(why.Saw), "inactive") {
		w.t.Errorf("the authenticator says %+v", why)
	}
	w.forgets("an inactive key", token)(w)
	w.mustAWS(nil, "iam", "update-access-key", "--user-name", "alice", "--access-key-id", p.alice.AccessKeyID, "--status", "Active")
	w.becomes(p.alice, aliceARN)
}

// entryTakenAway takes away the entry of the role by which she comes.
func (w *iam) entryTakenAway(p *people) {
	token := w.token(p.session, "muster")
	w.believed(token, "arn:aws:sts::"+iamAccount+":assumed-role/developers/work")
	w.mustKubectl("delete", "accessentry", "developers")
	w.refused("a token of a role whose access entry is gone is refused", token, 403, "no-entry")
	p.later = append(p.later, w.forgets("a role whose access entry is gone", token))
}

func (w *iam) removedUser(p *people) {
	token := w.token(p.alice, "muster")
	w.believed(token, aliceARN)
	w.mustAWS(nil, "iam", "delete-access-key", "--user-name", "alice", "--access-key-id", p.alice.AccessKeyID)
	w.refused("the token of a key that is deleted is refused", token, 403, "access-key")
	w.mustAWS(nil, "iam", "delete-user", "--user-name", "alice")
	p.later = append(p.later, w.forgets("a removed user", token))
	if _, err := w.aws(w.as(p.alice), "sts", "get-caller-identity"); err == nil || !strings.Contains(err.Error(), "InvalidClientTokenId") {
		w.t.Errorf("STS says of a removed user: %v", err)
	}
	w.madeAgain()
	w.mustKubectl("delete", "accessentry", "alice")
}

// madeAgain makes another user of her name while her access entry, which kubectl made without an id, is there still;
// and an entry for somebody who is made after it.
func (w *iam) madeAgain() {
	again := w.user("alice")
	w.refused("another user of her name is refused", w.token(again, "muster"), 403, "principal-id")
	if out, _, err := w.try("auth", "check", aliceARN, "--principal-id", "AIDAAAAAAAAAAAAAAAAAA"); err == nil || !strings.Contains(out, "another one of that name") {
		w.t.Errorf("muster auth check says (%v):\n%s", err, out)
	}
	const dora = "arn:aws:iam::" + iamAccount + ":user/dora"
	w.apply("{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: dora}, spec: {principalARN: '" + dora + "'}}")
	w.mustKubectl("wait", "accessentry/dora", "--for=condition=PrincipalKnown=False", "--timeout=10s")
	w.refused("a user who was made after her entry is refused", w.token(w.user("dora"), "muster"), 403, "entry")
	if out, talk, err := w.try("auth", "check", dora); err == nil || !strings.Contains(out+talk, "there was no "+dora+" when the entry was made") {
		w.t.Errorf("muster auth check says (%v):\n%s%s", err, out, talk)
	}
	w.mustKubectl("delete", "accessentry", "dora")
	w.apply("{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: dora}, spec: {principalARN: '" + dora + "', username: dora}}")
	w.mustKubectl("wait", "accessentry/dora", "--for=jsonpath={.spec.principalID}", "--timeout=10s")
	w.mustKubectl("delete", "accessentry", "dora")
}

// awsAuth gives a ConfigMap with one entry that is wrong, as people write it: the ARN of an instance profile. Of bob's
// key the authenticator has heard, so that all this needs no identity service.
func (w *iam) awsAuth(p *people) {
	bob := p.bob
	const good = `    - userarn: arn:aws:iam::` + iamAccount + `:user/bob
      username: bob
      groups: [developers]
`
	roles := func(arn string) string {
		return `apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: aws-auth}
data:
  mapRoles: |
    - rolearn: ` + arn + `
      username: team:{{SessionName}}
      groups: [developers]
  mapUsers: |
` + good
	}
	w.apply(roles("arn:aws:iam::" + iamAccount + ":instance-profile/deploy"))
	w.becomes(bob, "bob")
	w.eventually("an Event on aws-auth tells of the bad entry", func() error {
		events, err := w.kubectl("-n", "kube-system", "get", "events", "--field-selector", "involvedObject.name=aws-auth", "-o", `jsonpath={range .items[*]}{.type} {.reason} {.message}{"\n"}{end}`)
		if err == nil && !anyLine(events, "Warning MappingNotUsed", "mapRoles[0]", "instance-profile") {
			err = fmt.Errorf("events: %q", events)
		}
		return err
	})
	out, talk, err := w.try("auth", "check")
	if err == nil || !anyLine(out, "mapRoles[0]", "rolearn", "instance") {
		w.t.Errorf("muster auth check says %v:\n%s%s", err, out, talk)
	}
	w.t.Logf("muster auth check:\n%s", out)
	// A list that is not YAML takes its own entries away, and no others.
	w.apply(strings.Replace(roles("x"), "    - rolearn: x", "    - rolearn: [x", 1))
	w.becomes(bob, "bob")
	w.apply(roles("arn:aws:iam::" + iamAccount + ":role/deploy"))
	w.eventually("nothing is wrong any more", func() error {
		out, talk, err := w.try("auth", "check")
		if err == nil && !strings.Contains(out, "Nothing is wrong") {
			err = errors.New("something is")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s%s", err, out, talk)
		}
		return err
	})
	w.becomes(bob, "bob")
	file := w.t.TempDir() + "/aws-auth.yaml"
	if err := os.WriteFile(file, []byte(roles("arn:aws:iam::12:role/x")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if out, _, err := w.try("auth", "check", "-f", file); err == nil || !strings.Contains(out, "mapRoles[0]") {
		w.t.Errorf("a bad file passes (%v):\n%s", err, out)
	}
	token := w.token(bob, "muster")
	w.believed(token, "bob")
	w.mustKubectl("-n", "kube-system", "delete", "configmap", "aws-auth")
	w.refused("the token of a user whose entry in aws-auth is gone is refused", token, 403, "no-entry")
	p.later = append(p.later, w.forgets("a user whose entry in aws-auth is gone", token))
}
