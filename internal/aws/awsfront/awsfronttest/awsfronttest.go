// SPDX-License-Identifier: Apache-2.0

// Package awsfronttest has what tests of actions stand on: a caller, IAM as a gate that remembers what it is asked, a
// front, and how an API server marks new objects. It trusts everybody, unless it is told to deny.
package awsfronttest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
)

// Account is the one of the caller.
const Account = "000000000000"

// Caller is the user admin.
type Caller struct{}

// ARN implements [awsfront.Caller].
func (Caller) ARN() arn.ARN {
	return arn.ARN{Partition: "aws", Service: "iam", Account: Account, Resource: "user/admin"}
}

// Principal implements [awsfront.Caller].
func (c Caller) Principal() arn.ARN { return c.ARN() }

// Account implements [awsfront.Caller].
func (Caller) Account() string { return Account }

// Gate lets everybody in, and remembers what IAM is asked.
type Gate struct {
	// Asked has a line for each question: action, resource, and condition keys in their order.
	Asked []string
	// Denies has every action denied.
	Denies bool
	// Answered, if not nil, is called when a question was answered: what others do between the questions and the action.
	Answered func()

	misfits []error
}

// Admit implements [awsfront.Gate].
func (*Gate) Admit(*http.Request, string, []byte) (awsfront.Caller, error) { return Caller{}, nil }

// Unsigned implements [awsfront.Gate]. The actions of tests are signed.
func (*Gate) Unsigned(*http.Request, string, string) (awsfront.Caller, error) {
	return nil, &awsfault.Error{Code: "MissingAuthenticationToken", Status: http.StatusForbidden, Message: "no", OfIAM: true}
}

// beyond are the actions that IAM is asked about although AWS's reference has them otherwise.
var beyond = map[string]bool{
	"iam:PassRole":            true, // a permission that no request is
	"eks:ListTagsForResource": true, // of access entries and pod identity associations, which can be tagged, the reference says nothing here
}

// Authorize implements [awsfront.Gate].
func (g *Gate) Authorize(_ awsfront.Caller, action string, about awsfront.Target) error {
	if err := awsactions.Fits(action, about.Resource); err != nil && !beyond[action] {
		g.misfits = append(g.misfits, err)
	}
	keys := make([]string, 0, len(about.Conditions))
	for key, values := range about.Conditions {
		keys = append(keys, key+"="+strings.Join(values, "+"))
	}
	slices.Sort(keys)
	g.Asked = append(g.Asked, strings.TrimSpace(fmt.Sprint(action, " ", about.Resource, " ", strings.Join(keys, " "))))
	if g.Answered != nil {
		defer g.Answered()
	}
	if g.Denies {
		return &awsfault.Error{Code: "AccessDenied", Status: http.StatusForbidden, Message: "no", OfIAM: true}
	}
	return nil
}

// New is a front behind a gate. The test fails if IAM is asked about an action with a resource that the list of actions
// does not have for it (package awsactions). The test's log has a line for each request, with the causes of failures,
// which callers do not see. A nil now is the clock.
func New(t *testing.T, gate *Gate, now func() time.Time) *awsfront.Front {
	t.Helper()
	front, err := awsfront.New(awsfront.Config{Gate: gate, Now: now, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, misfit := range gate.misfits {
			t.Error(misfit)
		}
	})
	return front
}

// Numbered has the objects that are made in a management plane in memory be numbered by their UID, and made at the time
// of their number.
func Numbered(made func(n int) time.Time) interceptor.Funcs {
	n := 0
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
		n++
		object.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n)))
		object.SetCreationTimestamp(metav1.NewTime(made(n)))
		return c.Create(ctx, object, options...)
	}}
}
