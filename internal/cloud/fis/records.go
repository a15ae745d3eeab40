// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"time"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/experiment"
)

// The codes of the service.
const (
	notFound   = "ResourceNotFoundException"
	validation = "ValidationException"
	conflict   = "ConflictException"
	quota      = "ServiceQuotaExceededException"
)

// The limits of the service, as AWS's.
const (
	maxTemplates = 500
	maxActive    = 5
	// maxEnded is how many experiments that have ended are kept; AWS keeps them for 120 days.
	maxEnded = 100
)

var (
	templates   = awsrecord.Kind[experiment.Template]{Type: "fis-template"}
	experiments = awsrecord.Kind[running]{Type: "fis-experiment"}
)

type (
	templateRecord   = awsrecord.Record[experiment.Template]
	experimentRecord = awsrecord.Record[running]
)

// The states of experiments and their actions.
const (
	initiating = "initiating"
	runs       = "running"
	completed  = "completed"
	stopping   = "stopping"
	stopped    = "stopped"
	failed     = "failed"
	cancelled  = "cancelled"
)

// running is an experiment: what it does, and how far it is.
type running struct {
	TemplateID string              `json:"templateId"`
	Template   experiment.Template `json:"template"`
	Status     string              `json:"status"`
	Reason     string              `json:"reason"`
	// Began is when the actions began; nil before that.
	Began *time.Time `json:"began,omitempty"`
	Ended *time.Time `json:"ended,omitempty"`
	// Resolved are the instances of each target, by its name.
	Resolved map[string][]string `json:"resolved,omitempty"`
}

// active reports whether something is left to do.
func (r *running) active() bool {
	return r.Status == initiating || r.Status == runs || r.Status == stopping
}

// newID is the id of a new template or experiment. The same token always makes the same id.
func newID(prefix string, t awsresource.Token) string {
	seed := t.Key.Label()
	if seed == "" {
		seed = uuid.NewString()
	}
	sum := sha256.Sum256([]byte(seed))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:14]
}

// The prefixes of ids, and those of resources in ARNs.
const (
	templatePrefix     = "EXT"
	experimentPrefix   = "EXP"
	templateResource   = "experiment-template/"
	experimentResource = "experiment/"
)

// tokenOf reads the client token of a request.
func tokenOf(call *awsfront.Call, text string) (awsresource.Token, error) {
	return awsresource.TokenOf(call, text, "ClientToken")
}

// marked is a record as an object with marks of client tokens.
func marked(labels, annotations map[string]string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Labels: labels, Annotations: annotations}
}

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return &awsfault.Error{Code: validation, Message: err.Error(), Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// kept passes refusals on, and turns other errors of a read or a write into an answer.
func kept(noun, id string, err error) error {
	fault, refused := err.(*awsfault.Error) //nolint:errorlint // the change returned it as it is
	switch {
	case err == nil:
		return nil
	case refused:
		return fault
	case apierrors.IsNotFound(err):
		return awsfault.Errorf(notFound, "%s %.64s does not exist.", noun, id)
	}
	return away(err)
}

const (
	templateNoun   = "Experiment template"
	experimentNoun = "Experiment"
)

func (e *Experiments) template(ctx context.Context, id string) (*templateRecord, error) {
	found, err := templates.Get(ctx, e.Management, templates.NameOf(id))
	return found, kept(templateNoun, id, err)
}

func (e *Experiments) experiment(ctx context.Context, id string) (*experimentRecord, error) {
	found, err := experiments.Get(ctx, e.Management, experiments.NameOf(id))
	return found, kept(experimentNoun, id, err)
}

// about is a resource of an id as IAM is asked about it. A missing one has no tags.
func about[T any](ctx context.Context, e *Experiments, call *awsfront.Call, kind awsrecord.Kind[T], resource, id string) ([]awsfront.Target, error) {
	t := awsfront.Target{Resource: e.ARN(call, resource+id), Conditions: map[string][]string{}}
	found, err := kind.Get(ctx, e.Management, kind.NameOf(id))
	switch {
	case err == nil:
		t.Conditions = awsresource.ResourceTags(t.Conditions, found.Tags)
	case !apierrors.IsNotFound(err):
		return nil, away(err)
	}
	return []awsfront.Target{t}, nil
}

// byID is the input of actions about one template or experiment.
type byID struct{ ID string }
