// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/test/promise"
)

var (
	entriesOfCluster = schema.GroupVersionResource{Group: "access.muster.dev", Version: "v1alpha1", Resource: "accessentries"}
	iamUsers         = v1alpha1.GroupVersion.WithResource("iamusers")
)

// outsider is a principal whom the cluster lets in until its access is taken away.
type outsider struct {
	name, arn string
	keys      keys
	token     string
}

// field is the text of an element in an answer of the query protocol.
func field(answer, name string) string {
	found := regexp.MustCompile("<" + name + ">([^<]*)</" + name + ">").FindStringSubmatch(answer)
	if found == nil {
		return ""
	}
	return found[1]
}

func credentialsIn(answer string) keys {
	return keys{field(answer, "AccessKeyId"), field(answer, "SecretAccessKey"), field(answer, "SessionToken")}
}

// outsiders makes users, and one more role for each whose name begins with "role", and lets them in.
func (w *promises) outsiders(names ...string) []*outsider {
	w.t.Helper()
	var all []*outsider
	var entries strings.Builder
	for _, name := range names {
		o := &outsider{name: name, arn: "arn:aws:iam::" + iamAccount + ":user/" + name}
		if strings.HasPrefix(name, "role") {
			o.arn = "arn:aws:iam::" + iamAccount + ":role/" + name
			w.aws.must(awsForm("iam", "CreateRole", "RoleName", name, "AssumeRolePolicyDocument",
				`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "`+creatorARN+`"}, "Action": "sts:AssumeRole"}]}`))
			o.keys = credentialsIn(w.aws.must(awsForm("sts", "AssumeRole", "RoleArn", o.arn, "RoleSessionName", "work")))
		} else {
			w.aws.must(awsForm("iam", "CreateUser", "UserName", name))
			o.keys = credentialsIn(w.aws.must(awsForm("iam", "CreateAccessKey", "UserName", name)))
		}
		all = append(all, o)
		fmt.Fprintf(&entries, "---\n{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: %s}, spec: {principalARN: '%s', username: %s}}\n", name, o.arn, name)
	}
	w.apply(entries.String())
	for _, o := range all {
		w.eventually(o.name+" is let in", func() error {
			o.token = w.token(o.keys, "muster")
			code, user, why, err := w.review(w.t.Context(), o.token)
			if err == nil && (code != http.StatusOK || user.Username != o.name) {
				err = fmt.Errorf("%d user %q, %+v", code, user.Username, why)
			}
			return err
		})
	}
	return all
}

// turnedAway is answered once the authenticator refuses the token of somebody.
func (w *promises) turnedAway(o *outsider) func() error {
	return func() error {
		code, user, why, err := w.review(w.t.Context(), o.token)
		if err == nil && code != http.StatusForbidden {
			err = fmt.Errorf("%d user %q, %+v", code, user.Username, why)
		}
		return err
	}
}

// access takes access away in each way, of one after the other. The API server, which keeps what it was told, is asked
// meanwhile.
func (w *promises) access() {
	revocations := []struct {
		what string
		do   func(*outsider)
	}{
		{"a key is made inactive", func(o *outsider) {
			w.aws.must(awsForm("iam", "UpdateAccessKey", "UserName", o.name, "AccessKeyId", o.keys.AccessKeyID, "Status", "Inactive"))
		}},
		{"a key is deleted", func(o *outsider) {
			w.aws.must(awsForm("iam", "DeleteAccessKey", "UserName", o.name, "AccessKeyId", o.keys.AccessKeyID))
		}},
		{"a user is deleted in the management plane", func(o *outsider) { w.deleteUser(w.objectOf(o)) }},
		{"a role is deleted", func(o *outsider) { w.aws.must(awsForm("iam", "DeleteRole", "RoleName", o.name)) }},
	}
	var names []string
	for n := range promisedTimes {
		name := "revoked"
		if n%len(revocations) == 3 {
			name = "role"
		}
		names = append(names, fmt.Sprintf("%s-%d", name, n), fmt.Sprintf("entry-%d", n))
	}
	all := w.outsiders(names...)
	for n := range promisedTimes {
		revoked, how := all[2*n], revocations[n%len(revocations)]
		w.takenAway(promise.AccessRevoked, how.what, revoked, func() { how.do(revoked) })
		entry := all[2*n+1]
		w.takenAway(promise.AccessEntryRemoved, "an access entry is removed", entry, func() {
			if err := w.cluster.Resource(entriesOfCluster).Delete(w.t.Context(), entry.name, metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
		})
	}
}

// takenAway takes access away from somebody whom both believe.
func (w *promises) takenAway(p promise.Promise, what string, o *outsider, take func()) {
	w.t.Helper()
	w.believed(o.token, o.name)
	take()
	began := time.Now()
	w.later.Go(func() {
		w.withinOf(began, promise.AccessRevokedAPIServer, 200*time.Millisecond, what, func() error {
			who, err := w.whoami(w.tally.t.Context(), o.token)
			switch {
			case err == nil:
				return fmt.Errorf("it is %q", who.Username)
			case unauthorized(err):
				return nil
			default:
				return err
			}
		})
	})
	w.withinOf(began, p, 10*time.Millisecond, what, w.turnedAway(o))
}

// objectOf is the name of a user's object in the management plane.
func (w *promises) objectOf(o *outsider) string {
	w.t.Helper()
	list, err := w.management.Resource(iamUsers).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		if spec, _ := list.Items[i].Object["spec"].(map[string]any); spec["name"] == o.name {
			return list.Items[i].GetName()
		}
	}
	w.t.Fatalf("there is no user %s among %d", o.name, len(list.Items))
	return ""
}

func (w *promises) deleteUser(object string) {
	w.t.Helper()
	if err := w.management.Resource(iamUsers).Delete(w.t.Context(), object, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// with is the client of AWS's APIs of whoever has keys.
func (c *awsClient) with(k keys) *awsClient {
	other := *c
	other.keys = aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
	return &other
}
