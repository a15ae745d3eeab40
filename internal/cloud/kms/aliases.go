// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

const (
	aliasPrefix = "alias/"
	// reserved begins the aliases of keys that AWS manages.
	reserved = aliasPrefix + "aws/"
	maxAlias = 256
)

var aliases = awsrecord.Kind[alias]{Type: "kms-alias"}

// alias is what is kept of an alias. The record's name is the alias's, with alias/.
type alias struct {
	Target  string     `json:"target"`
	Updated *time.Time `json:"updated,omitempty"`
}

// checkAlias checks the name of an alias.
func checkAlias(name string) error {
	rest, ok := strings.CutPrefix(name, aliasPrefix)
	switch {
	case !ok:
		return awsfault.Errorf(validation, "Invalid identifier: the name of an alias begins with %s, as in %sNAME; it is %.100q", aliasPrefix, aliasPrefix, name)
	case rest == "" || len(name) > maxAlias || strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_-") != "":
		return awsfault.Errorf(validation, "1 validation error detected: Value '%.300s' at 'aliasName' failed to satisfy constraint: "+
			"Member must have at most %d characters and satisfy regular expression pattern: ^[a-zA-Z0-9:/_-]+$", name, maxAlias)
	}
	return nil
}

type aliasInput struct{ AliasName, TargetKeyID string }

// aboutAlias is about an alias and its key.
func (a *api) aboutAlias(ctx context.Context, call *awsfront.Call, name, target string) ([]awsfront.Target, error) {
	if err := checkAlias(name); err != nil {
		return nil, err
	}
	targets := []awsfront.Target{{Resource: a.ARN(call, name), Conditions: map[string][]string{"kms:CallerAccount": {call.Caller.Account()}}}}
	if target != "" {
		of, err := a.about(ctx, call, target)
		if err != nil {
			return nil, err
		}
		targets = append(targets, of)
	}
	return targets, nil
}

// target returns the key that an alias is to name.
func (a *api) target(ctx context.Context, call *awsfront.Call, text string) (*awsrecord.Record[key], error) {
	if strings.HasPrefix(text, aliasPrefix) || strings.Contains(text, ":"+aliasPrefix) {
		return nil, awsfault.Errorf(validation, "Aliases must refer to keys. Not aliases")
	}
	found, err := a.must(ctx, call, text, false)
	if err != nil {
		return nil, err
	}
	return found, a.usable(call, found, false)
}

func (a *api) checkOwn(name string) error {
	if strings.HasPrefix(name, reserved) {
		return awsfault.Errorf("NotAuthorizedException", "Names that begin with %s are for the keys that AWS manages: choose another than %.256s", reserved, name)
	}
	return nil
}

func (a *api) createAlias() awsfront.Spec[aliasInput, struct{}] {
	return awsfront.Spec[aliasInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *aliasInput) ([]awsfront.Target, error) {
			return a.aboutAlias(ctx, call, in.AliasName, in.TargetKeyID)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *aliasInput) (*struct{}, error) {
			if err := a.checkOwn(in.AliasName); err != nil {
				return nil, err
			}
			of, err := a.target(ctx, call, in.TargetKeyID)
			if err != nil {
				return nil, err
			}
			if err := a.sweep(ctx, call); err != nil { // of the name, too, if its key is gone
				return nil, err
			}
			err = aliases.Create(ctx, a.Management, &awsrecord.Record[alias]{ID: aliases.NameOf(in.AliasName), Name: in.AliasName, Data: alias{Target: of.ID}})
			switch {
			case apierrors.IsAlreadyExists(err):
				return nil, awsfault.Errorf(alreadyExists, "An alias with the name %s already exists", a.ARN(call, in.AliasName))
			case err != nil:
				return nil, away(err)
			}
			return nil, nil
		},
	}
}

func (a *api) missing(call *awsfront.Call, name string) error {
	return awsfault.Errorf(notFound, "Alias %s is not found.", a.ARN(call, name))
}

func (a *api) updateAlias() awsfront.Spec[aliasInput, struct{}] {
	return awsfront.Spec[aliasInput, struct{}]{
		// AWS asks about the old key, too: who may not use it must not take its name away.
		About: func(ctx context.Context, call *awsfront.Call, in *aliasInput) ([]awsfront.Target, error) {
			targets, err := a.aboutAlias(ctx, call, in.AliasName, in.TargetKeyID)
			if err != nil {
				return nil, err
			}
			old, err := a.about(ctx, call, in.AliasName)
			if err == nil && !strings.HasSuffix(old.Resource, "*") {
				targets = append(targets, old)
			}
			return targets, err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *aliasInput) (*struct{}, error) {
			if err := a.checkOwn(in.AliasName); err != nil {
				return nil, err
			}
			if _, err := a.must(ctx, call, in.AliasName, true); err != nil {
				return nil, err
			}
			of, err := a.target(ctx, call, in.TargetKeyID)
			if err != nil {
				return nil, err
			}
			now := call.Now.UTC().Truncate(time.Second)
			_, err = aliases.Update(ctx, a.Management, aliases.NameOf(in.AliasName), func(r *awsrecord.Record[alias]) error {
				r.Data = alias{Target: of.ID, Updated: &now}
				return nil
			})
			if apierrors.IsNotFound(err) {
				return nil, a.missing(call, in.AliasName)
			}
			return nil, kept(err)
		},
	}
}

type deleteAliasInput struct{ AliasName string }

func (a *api) deleteAlias() awsfront.Spec[deleteAliasInput, struct{}] {
	return awsfront.Spec[deleteAliasInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteAliasInput) ([]awsfront.Target, error) {
			return a.aboutAlias(ctx, call, in.AliasName, in.AliasName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteAliasInput) (*struct{}, error) {
			if err := a.checkOwn(in.AliasName); err != nil {
				return nil, err
			}
			err := aliases.Delete(ctx, a.Management, aliases.NameOf(in.AliasName))
			if apierrors.IsNotFound(err) {
				return nil, a.missing(call, in.AliasName)
			}
			return nil, kept(err)
		},
	}
}

type listAliasesInput struct {
	KeyID, Marker string
	Limit         *int32
}

type listAliasesOutput struct {
	Aliases    []aliasEntry
	NextMarker string
	Truncated  bool
}

type aliasEntry struct {
	AliasName, AliasARN, TargetKeyID string
	CreationDate, LastUpdatedDate    time.Time
}

func (a *api) listAliases() awsfront.Spec[listAliasesInput, listAliasesOutput] {
	return awsfront.Spec[listAliasesInput, listAliasesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *listAliasesInput) (*listAliasesOutput, error) {
			of := ""
			if in.KeyID != "" {
				found, err := a.must(ctx, call, in.KeyID, false)
				if err != nil {
					return nil, err
				}
				of = found.ID
			}
			if err := a.sweep(ctx, call); err != nil {
				return nil, err
			}
			all, err := aliases.List(ctx, a.Management)
			if err != nil {
				return nil, away(err)
			}
			var chosen []awsrecord.Record[alias]
			for _, r := range all {
				if of == "" || r.Data.Target == of {
					chosen = append(chosen, r)
				}
			}
			cut, next, err := awsresource.Page(a.Account, call, of, chosen, func(r awsrecord.Record[alias]) string { return r.Name }, in.Limit, in.Marker)
			out := &listAliasesOutput{Aliases: []aliasEntry{}, NextMarker: next, Truncated: next != ""}
			for _, r := range cut {
				entry := aliasEntry{AliasName: r.Name, AliasARN: a.ARN(call, r.Name), TargetKeyID: r.Data.Target, CreationDate: r.Created, LastUpdatedDate: r.Created}
				if r.Data.Updated != nil {
					entry.LastUpdatedDate = *r.Data.Updated
				}
				out.Aliases = append(out.Aliases, entry)
			}
			return out, err
		},
	}
}
