// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Questions that a story asks again and again, it asks as an SDK does. A call of the AWS CLI costs some hundred times
// as much of a processor.

// eksGets asks EKS for what is at a path, as the first user. An error has the code as the AWS CLI writes it.
func (w *iam) eksGets(path string) func(into any) error {
	w.t.Helper()
	return w.eksGetsAs(w.creator(), path)
}

// eksGetsAs asks as somebody.
func (w *iam) eksGetsAs(k keys, path string) func(into any) error {
	w.t.Helper()
	c := newAWSClient(w.t, w)
	c.keys = aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}
	return func(into any) error {
		answer, err := c.send(eksRequest(http.MethodGet, path, ""))
		if err != nil {
			return err
		}
		if code := answer.code(); code != "" {
			return fmt.Errorf("%s is answered with (%s) %s", path, code, answer.body)
		}
		return json.Unmarshal([]byte(answer.body), into)
	}
}

// The paths of what EKS describes.
func clusterPath(name string) string { return "/clusters/" + name }

func nodegroupPath(cluster, name string) string { return clusterPath(cluster) + "/node-groups/" + name }

func addonPath(cluster, name string) string { return clusterPath(cluster) + "/addons/" + name }

// eksBecomes waits until what is at a path has a status.
func (w *iam) eksBecomes(path, status string) {
	w.t.Helper()
	gets := w.eksGets(path)
	w.eventually(path+" is "+status, func() error {
		var shown map[string]struct {
			Status string
			Health json.RawMessage
		}
		if err := gets(&shown); err != nil {
			return err
		}
		for _, resource := range shown { // the answer has one
			if resource.Status == status {
				return nil
			}
		}
		return fmt.Errorf("it is %s", shown)
	})
}

// eksGone waits until EKS does not find what is at a path any more.
func (w *iam) eksGone(path string) {
	w.t.Helper()
	gets := w.eksGets(path)
	w.eventually(path+" is gone", func() error {
		var shown json.RawMessage
		return gone(string(shown), gets(&shown))
	})
}

// updatePath is where an update of a cluster is, or of what the CLI's arguments name.
func updatePath(cluster, id string, of ...string) string {
	path := clusterPath(cluster) + "/updates"
	if id != "" {
		path += "/" + id
	}
	switch {
	case len(of) == 0:
		return path
	case of[0] == "--nodegroup-name":
		return path + "?nodegroupName=" + of[1]
	default:
		return path + "?addonName=" + of[1]
	}
}

// updated waits until an update of a cluster, or of what the other arguments name, is Successful.
func (w *iam) updated(u shownUpdate, cluster string, of ...string) {
	w.t.Helper()
	began, gets := time.Now(), w.eksGets(updatePath(cluster, u.ID, of...))
	w.eventually("update "+u.Type+" is Successful", func() error {
		var shown struct{ Update shownUpdate }
		if err := gets(&shown); err != nil {
			return err
		}
		if shown.Update.Status == "Failed" {
			w.t.Fatalf("update %s: %+v", u.ID, shown)
		}
		return is(shown.Update.Status, "Successful")
	})
	w.t.Logf("%s: %v", u.Type, time.Since(began).Round(100*time.Millisecond))
	var list struct{ UpdateIDs []string }
	if err := w.eksGets(updatePath(cluster, "", of...))(&list); err != nil || !strings.Contains(strings.Join(list.UpdateIDs, " "), u.ID) {
		w.t.Errorf("updates %v, want %s among them: %v", list.UpdateIDs, u.ID, err)
	}
}

// kubectlIn runs kubectl against a cluster by the kubeconfig of `aws eks update-kubeconfig`, with a token that is made
// here: kubectl would start an AWS CLI for each call.
func (w *iam) kubectlIn(who keys, cluster, kubeconfig string, args ...string) (string, error) {
	w.t.Helper()
	return w.run(nil, filepath.Join(w.bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig, "--token", w.token(who, cluster)}, args...)...)
}

// gone reports whether EKS does not find something any more.
func gone(out string, err error) error {
	switch {
	case err == nil:
		return errors.New("it is there: " + out)
	case strings.Contains(err.Error(), "(ResourceNotFoundException)"):
		return nil
	}
	return err
}
