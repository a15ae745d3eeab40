// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// The codes of KMS.
const (
	notFound        = "NotFoundException"
	invalidArn      = "InvalidArnException"
	invalidState    = "KMSInvalidStateException"
	keyDisabled     = "DisabledException"
	alreadyExists   = "AlreadyExistsException"
	malformedPolicy = "MalformedPolicyDocumentException"
	unsupported     = "UnsupportedOperationException"
	validation      = "ValidationException"
)

// Properties of all keys.
const (
	origin    = "AWS_KMS"
	manager   = "CUSTOMER"
	usage     = "ENCRYPT_DECRYPT"
	symmetric = "SYMMETRIC_DEFAULT"
)

// The states of a key.
const (
	stateEnabled  = "Enabled"
	stateDisabled = "Disabled"
	statePending  = "PendingDeletion"
)

var keys = awsrecord.Kind[key]{Type: "kms-key"}

// key is what is kept of a key.
type key struct {
	Policy      string `json:"policy"`
	Description string `json:"description,omitempty"`
	Disabled    bool   `json:"disabled,omitempty"`
	MultiRegion bool   `json:"multiRegion,omitempty"`
	// RotationDays is 0 while the key is not rotated.
	RotationDays int32      `json:"rotationDays,omitempty"`
	RotatedSince *time.Time `json:"rotatedSince,omitempty"`
	// DeletionDate is set while the key is pending deletion.
	DeletionDate *time.Time `json:"deletionDate,omitempty"`
}

func (k key) state() string {
	switch {
	case k.DeletionDate != nil:
		return statePending
	case k.Disabled:
		return stateDisabled
	}
	return stateEnabled
}

// gone reports whether the deletion date of a key has passed.
func (k key) gone(now time.Time) bool { return k.DeletionDate != nil && !k.DeletionDate.After(now) }

type metadata struct {
	AWSAccountID, KeyID, ARN       string
	CreationDate, DeletionDate     time.Time
	Enabled                        bool
	Description                    *string
	KeyUsage, KeyState, Origin     string
	KeyManager                     string
	CustomerMasterKeySpec, KeySpec string
	EncryptionAlgorithms           []string
	MultiRegion                    bool
	MultiRegionConfiguration       *multiRegion
}

type multiRegion struct {
	MultiRegionKeyType string
	PrimaryKey         regionKey
	ReplicaKeys        []regionKey
}

type regionKey struct{ ARN, Region string }

type keyInput struct{ KeyID string }

type keyOutput struct{ KeyMetadata metadata }

// show is a key as KMS answers it.
func (a *api) show(call *awsfront.Call, r *awsrecord.Record[key]) metadata {
	m := metadata{
		AWSAccountID: call.Caller.Account(), KeyID: r.ID, ARN: a.keyARN(call, r.ID), CreationDate: r.Created, Enabled: r.Data.state() == stateEnabled,
		Description: &r.Data.Description, KeyUsage: usage, KeyState: r.Data.state(), Origin: origin, KeyManager: manager,
		CustomerMasterKeySpec: symmetric, KeySpec: symmetric, EncryptionAlgorithms: []string{symmetric}, MultiRegion: r.Data.MultiRegion,
	}
	if r.Data.DeletionDate != nil {
		m.DeletionDate = *r.Data.DeletionDate
	}
	if r.Data.MultiRegion {
		m.MultiRegionConfiguration = &multiRegion{MultiRegionKeyType: "PRIMARY", PrimaryKey: regionKey{m.ARN, a.Region}, ReplicaKeys: []regionKey{}}
	}
	return m
}

func (a *api) keyARN(call *awsfront.Call, id string) string { return a.ARN(call, "key/"+id) }

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: validation, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: "ConflictException", Message: "The resource was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "DependencyTimeoutException", Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// named is what a request calls a key: KEY-ID, alias/NAME, or the ARN of either. Resource is without the ARN's
// beginning.
type named struct {
	text      string
	resource  string
	elsewhere bool // of another account or region
}

func (a *api) read(call *awsfront.Call, text string) (named, error) {
	n := named{text: text, resource: text}
	if strings.HasPrefix(text, "arn:") {
		parsed, err := arn.Parse(text)
		if err != nil || parsed.Service != service {
			return n, awsfault.Errorf(invalidArn, "Invalid arn %.300s", text)
		}
		n.resource, n.elsewhere = parsed.Resource, parsed.Region != a.Region || parsed.Account != call.Caller.Account()
	} else if !strings.HasPrefix(text, aliasPrefix) {
		n.resource = "key/" + text
	}
	if !isKeyID(strings.TrimPrefix(n.resource, "key/")) && checkAlias(n.resource) != nil {
		return n, awsfault.Errorf(notFound, "Invalid keyId '%.300s'", text)
	}
	return n, nil
}

// isKeyID reports whether a text may be the id of a key: a UUID, or mrk- and 32 digits.
func isKeyID(text string) bool {
	return text != "" && len(text) <= 64 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// find returns the key that a request names, or nil if it is not there. Alias is the name that the request has for it,
// if it is an alias.
func (a *api) find(ctx context.Context, call *awsfront.Call, n named) (found *awsrecord.Record[key], alias string, err error) {
	id, isKey := strings.CutPrefix(n.resource, "key/")
	if !isKey {
		alias = n.resource
	}
	if n.elsewhere {
		return nil, alias, nil
	}
	if !isKey {
		to, err := aliases.Get(ctx, a.Management, aliases.NameOf(alias))
		switch {
		case apierrors.IsNotFound(err):
			return nil, alias, nil
		case err != nil:
			return nil, alias, away(err)
		}
		id = to.Data.Target
	}
	found, err = keys.Get(ctx, a.Management, id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, alias, nil
	case err != nil:
		return nil, alias, away(err)
	case found.Data.gone(call.Now):
		return nil, alias, nil
	}
	return found, alias, nil
}

// must returns the key that a request names. Actions that change a key take no alias for it, as on AWS.
func (a *api) must(ctx context.Context, call *awsfront.Call, text string, byAlias bool) (*awsrecord.Record[key], error) {
	n, err := a.read(call, text)
	if err != nil {
		return nil, err
	}
	if !byAlias && strings.HasPrefix(n.resource, aliasPrefix) {
		return nil, awsfault.Errorf(notFound, "Invalid keyId '%.300s'", text)
	}
	found, alias, err := a.find(ctx, call, n)
	switch {
	case err != nil:
		return nil, err
	case found == nil && alias != "":
		return nil, awsfault.Errorf(notFound, "Alias %s is not found.", a.fullARN(call, n))
	case found == nil:
		return nil, awsfault.Errorf(notFound, "Key '%s' does not exist", a.fullARN(call, n))
	}
	return found, nil
}

func (a *api) fullARN(call *awsfront.Call, n named) string {
	if strings.HasPrefix(n.text, "arn:") {
		return n.text
	}
	return a.ARN(call, n.resource)
}

// about is a key as IAM is asked about it. A missing key has no tags; a key that is named by a missing alias has * for
// its id.
func (a *api) about(ctx context.Context, call *awsfront.Call, text string) (awsfront.Target, error) {
	t := awsfront.Target{Conditions: map[string][]string{"kms:CallerAccount": {call.Caller.Account()}}}
	n, err := a.read(call, text)
	if err != nil {
		return t, err
	}
	found, alias, err := a.find(ctx, call, n)
	if err != nil {
		return t, err
	}
	if alias != "" {
		t.Conditions["kms:RequestAlias"] = []string{alias}
	}
	if found == nil {
		if t.Resource = a.fullARN(call, n); alias != "" {
			t.Resource = a.keyARN(call, "*")
		}
		return t, nil
	}
	t.Resource = a.keyARN(call, found.ID)
	keyConditions(t.Conditions, found.Data.MultiRegion)
	awsresource.ResourceTags(t.Conditions, found.Tags)
	all, err := aliases.List(ctx, a.Management)
	if err != nil {
		return t, away(err)
	}
	for _, other := range all {
		if other.Data.Target == found.ID {
			t.Conditions["kms:ResourceAliases"] = append(t.Conditions["kms:ResourceAliases"], other.Name)
		}
	}
	slices.Sort(t.Conditions["kms:ResourceAliases"])
	return t, nil
}

func keyConditions(conditions map[string][]string, multiRegion bool) {
	conditions["kms:KeyOrigin"], conditions["kms:KeySpec"], conditions["kms:KeyUsage"] = []string{origin}, []string{symmetric}, []string{usage}
	conditions["kms:MultiRegion"] = []string{fmt.Sprint(multiRegion)}
}

// aboutKey is about one key, with what the request says of it.
func (a *api) aboutKey(ctx context.Context, call *awsfront.Call, text string, conditions map[string][]string) ([]awsfront.Target, error) {
	t, err := a.about(ctx, call, text)
	if err != nil {
		return nil, err
	}
	maps.Copy(t.Conditions, conditions)
	return []awsfront.Target{t}, nil
}

// usable refuses a key that is pending deletion, and one that is disabled if that matters to the action.
func (a *api) usable(call *awsfront.Call, r *awsrecord.Record[key], disabledToo bool) error {
	switch state := r.Data.state(); {
	case state == statePending:
		return awsfault.Errorf(invalidState, "%s is pending deletion.", a.keyARN(call, r.ID))
	case state == stateDisabled && disabledToo:
		return awsfault.Errorf(keyDisabled, "%s is disabled.", a.keyARN(call, r.ID))
	}
	return nil
}

// change changes a key that a request names, if it is in a state to be changed.
func (a *api) change(ctx context.Context, call *awsfront.Call, text string, check, change func(*awsrecord.Record[key]) error) error {
	found, err := a.must(ctx, call, text, false)
	if err != nil {
		return err
	}
	_, err = keys.Update(ctx, a.Management, found.ID, func(r *awsrecord.Record[key]) error {
		if err := check(r); err != nil {
			return err
		}
		return change(r)
	})
	if apierrors.IsNotFound(err) {
		return awsfault.Errorf(notFound, "Key '%s' does not exist", a.keyARN(call, found.ID))
	}
	return kept(err)
}

// kept passes refusals on, and turns other errors of a write into an answer.
func kept(err error) error {
	if fault, ok := err.(*awsfault.Error); ok { //nolint:errorlint // the change returned it as it is
		return fault
	}
	if err != nil {
		return away(err)
	}
	return nil
}
