// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/aws/sshkey"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// keptKeyPair is a key pair as it is kept: without its private half, which only the answer of CreateKeyPair has.
type keptKeyPair struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	PublicKey   string `json:"publicKey"`
}

const (
	keyPairResource = "key-pair"
	maxKeyName      = 255
	// maxKeyPairs is how many DescribeKeyPairs, which has no pages, can answer.
	maxKeyPairs = 1000
)

// HasKeyPair makes the check whether the account has a key pair of a name.
func HasKeyPair(management client.Client) func(ctx context.Context, name string) (bool, error) {
	return func(ctx context.Context, name string) (bool, error) {
		all, err := awsrecord.Kind[keptKeyPair]{Type: keyPairResource}.List(ctx, management)
		if err != nil {
			return false, fmt.Errorf("listing key pairs: %w", err)
		}
		return slices.ContainsFunc(all, func(r awsrecord.Record[keptKeyPair]) bool { return r.Data.Name == name }), nil
	}
}

func (a *api) keyPairs() records[keptKeyPair] {
	return records[keptKeyPair]{api: a, kind: ec2id.KeyPair, of: awsrecord.Kind[keptKeyPair]{Type: keyPairResource}}
}

func (a *api) registerKeyPairs(f *awsfront.Front) {
	register(a, f, "CreateKeyPair", a.createKeyPair())
	register(a, f, "ImportKeyPair", a.importKeyPair())
	register(a, f, "DescribeKeyPairs", a.describeKeyPairs())
	register(a, f, "DeleteKeyPair", a.deleteKeyPair())
	tagger := a.keyPairs().tagger(keyPairResource, nil)
	tagger.about = func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
		found, err := a.keyPairs().get(ctx, id)
		if err != nil {
			return awsfront.Target{}, err
		}
		return a.aboutKeyPair(call, found), nil
	}
	a.tagged(tagger)
}

// aboutKeyPair is a key pair as IAM is asked about it, whose ARN has its name.
func (a *api) aboutKeyPair(call *awsfront.Call, r *record[keptKeyPair]) awsfront.Target {
	return a.target(call, keyPairResource, r.Data.Name, r.Tags, map[string][]string{"ec2:KeyPairName": {r.Data.Name}, "ec2:KeyPairType": {r.Data.Type}})
}

// aboutNewKeyPair is one that is to be made.
func (a *api) aboutNewKeyPair(call *awsfront.Call, name, kind string, specifications []tagSpecification) ([]awsfront.Target, error) {
	tags, err := readTags(specifications, keyPairResource)
	if err != nil {
		return nil, err
	}
	target := a.target(call, keyPairResource, name, nil, map[string][]string{"ec2:KeyPairName": {name}, "ec2:KeyPairType": {kind}})
	return []awsfront.Target{requestTags(target, tags[keyPairResource])}, nil
}

type createKeyPairInput struct {
	DryRun                      bool
	KeyName, KeyType, KeyFormat string
	TagSpecifications           []tagSpecification
}

type createKeyPairOutput struct {
	KeyPairID, KeyName, KeyFingerprint, KeyMaterial string
	Tags                                            []awstag.Tag
}

func (a *api) createKeyPair() awsfront.Spec[createKeyPairInput, createKeyPairOutput] {
	kindOf := func(in *createKeyPairInput) string {
		if in.KeyType == "" {
			return sshkey.RSA
		}
		return in.KeyType
	}
	return awsfront.Spec[createKeyPairInput, createKeyPairOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *createKeyPairInput) ([]awsfront.Target, error) {
			return a.aboutNewKeyPair(call, in.KeyName, kindOf(in), in.TagSpecifications)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *createKeyPairInput) (*createKeyPairOutput, error) {
			if err := errors.Join(only("KeyType", in.KeyType, sshkey.RSA, sshkey.ED25519), only("KeyFormat", in.KeyFormat, "pem")); err != nil {
				return nil, err
			}
			out := &createKeyPairOutput{}
			made, err := a.makeKeyPair(ctx, in.KeyName, in.DryRun, in.TagSpecifications, func() (keptKeyPair, error) {
				public, private, fingerprint, err := sshkey.New(kindOf(in))
				out.KeyMaterial = private
				return keptKeyPair{in.KeyName, public.Type, fingerprint, public.String()}, err
			})
			if err != nil {
				return nil, err
			}
			out.KeyPairID, out.KeyName, out.KeyFingerprint, out.Tags = made.ID, made.Data.Name, made.Data.Fingerprint, awsresource.ShownTags(made.Tags)
			return out, nil
		},
	}
}

type importKeyPairInput struct {
	DryRun            bool
	KeyName           string
	PublicKeyMaterial []byte
	TagSpecifications []tagSpecification
}

type importKeyPairOutput struct {
	KeyPairID, KeyName, KeyFingerprint string
	Tags                               []awstag.Tag
}

func (a *api) importKeyPair() awsfront.Spec[importKeyPairInput, importKeyPairOutput] {
	return awsfront.Spec[importKeyPairInput, importKeyPairOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *importKeyPairInput) ([]awsfront.Target, error) {
			public, _ := sshkey.Parse(string(in.PublicKeyMaterial)) // one that is wrong is refused below
			return a.aboutNewKeyPair(call, in.KeyName, public.Type, in.TagSpecifications)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *importKeyPairInput) (*importKeyPairOutput, error) {
			public, err := sshkey.Parse(string(in.PublicKeyMaterial))
			if err != nil {
				return nil, awsfault.Errorf("InvalidKey.Format", "%s", err)
			}
			made, err := a.makeKeyPair(ctx, in.KeyName, in.DryRun, in.TagSpecifications, func() (keptKeyPair, error) {
				fingerprint, err := public.Fingerprint()
				return keptKeyPair{in.KeyName, public.Type, fingerprint, public.String()}, err
			})
			if err != nil {
				return nil, err
			}
			return &importKeyPairOutput{made.ID, made.Data.Name, made.Data.Fingerprint, awsresource.ShownTags(made.Tags)}, nil
		},
	}
}

// makeKeyPair checks a request and keeps the pair that it makes. EC2 has no client tokens for key pairs: a name is given once.
func (a *api) makeKeyPair(ctx context.Context, name string, dry bool, specifications []tagSpecification, key func() (keptKeyPair, error)) (*record[keptKeyPair], error) {
	ascii := !slices.ContainsFunc([]byte(name), func(b byte) bool { return b < ' ' || b > '~' })
	if name == "" || len(name) > maxKeyName || !ascii {
		return nil, awsfault.Errorf(invalidParameter, "Value (%.64q) for parameter KeyName is invalid. It must be of 1 to %d ASCII characters", name, maxKeyName)
	}
	tags, err := readTags(specifications, keyPairResource)
	if err != nil {
		return nil, err
	}
	defer a.locks.Hold("key pairs")()
	all, err := a.keyPairs().list(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case slices.ContainsFunc(all, func(r record[keptKeyPair]) bool { return r.Data.Name == name }):
		return nil, awsfault.Errorf("InvalidKeyPair.Duplicate", "The keypair '%s' already exists.", name)
	case len(all) >= maxKeyPairs:
		return nil, awsfault.Errorf("KeyPairLimitExceeded", "There are %d key pairs: Muster keeps at most %d", len(all), maxKeyPairs)
	}
	if err := dryrun.Would(dry); err != nil {
		return nil, err
	}
	data, err := key()
	if err != nil {
		return nil, err
	}
	return a.keyPairs().create(ctx, data, tags[keyPairResource], awsresource.Token{})
}

type describeKeyPairsInput struct {
	filtered
	KeyNames, KeyPairIDs []string
	IncludePublicKey     bool
}

type describeKeyPairsOutput struct{ KeyPairs []keyPairInfo }

// keyPairInfo is a key pair as EC2 shows it.
type keyPairInfo struct {
	KeyPairID, KeyName, KeyType, KeyFingerprint, PublicKey string
	CreateTime                                             time.Time
	Tags                                                   []awstag.Tag
}

func (a *api) describeKeyPairs() awsfront.Spec[describeKeyPairsInput, describeKeyPairsOutput] {
	return awsfront.Spec[describeKeyPairsInput, describeKeyPairsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeKeyPairsInput) (*describeKeyPairsOutput, error) {
			all, err := a.keyPairs().list(ctx)
			if err != nil {
				return nil, err
			}
			var shown []keyPairInfo
			missing := slices.Clone(in.KeyNames)
			for i := range all {
				r := &all[i]
				missing = slices.DeleteFunc(missing, func(name string) bool { return name == r.Data.Name })
				if len(in.KeyNames) > 0 && !slices.Contains(in.KeyNames, r.Data.Name) {
					continue
				}
				info := keyPairInfo{
					KeyPairID: r.ID, KeyName: r.Data.Name, KeyType: r.Data.Type, KeyFingerprint: r.Data.Fingerprint, CreateTime: r.Created, Tags: awsresource.ShownTags(r.Tags),
				}
				if in.IncludePublicKey {
					info.PublicKey = r.Data.PublicKey + " " + r.Data.Name
				}
				shown = append(shown, info)
			}
			if len(missing) > 0 {
				return nil, ec2id.KeyPair.NotFound(missing...)
			}
			out := &describeKeyPairsOutput{}
			out.KeyPairs, _, err = choose(a, call, keyPairNoun(), shown, in.KeyPairIDs, paged{filtered: in.filtered})
			return out, err
		},
	}
}

func keyPairNoun() noun[keyPairInfo] {
	return noun[keyPairInfo]{
		kind: ec2id.KeyPair, id: func(k *keyPairInfo) string { return k.KeyPairID }, tags: func(k *keyPairInfo) map[string]string { return awsresource.TagMap(k.Tags) },
		rules: ec2filter.Rules{Names: []string{"fingerprint", "key-name", "key-pair-id"}},
		values: func(k *keyPairInfo, name string) []string {
			return []string{map[string]string{"fingerprint": k.KeyFingerprint, "key-name": k.KeyName, "key-pair-id": k.KeyPairID}[name]}
		},
	}
}

type deleteKeyPairInput struct {
	DryRun             bool
	KeyName, KeyPairID string
}

type deleteKeyPairOutput struct {
	KeyPairID string
	Return    *bool
}

// deleteKeyPair deletes a key pair. As on EC2 it is not an error if there is none.
func (a *api) deleteKeyPair() awsfront.Spec[deleteKeyPairInput, deleteKeyPairOutput] {
	find := func(ctx context.Context, in *deleteKeyPairInput) (*record[keptKeyPair], error) {
		all, err := a.keyPairs().list(ctx)
		i := slices.IndexFunc(all, func(r record[keptKeyPair]) bool {
			return (in.KeyName == "" || r.Data.Name == in.KeyName) && (in.KeyPairID == "" || r.ID == in.KeyPairID)
		})
		if err != nil || i < 0 {
			return nil, err
		}
		return &all[i], nil
	}
	return awsfront.Spec[deleteKeyPairInput, deleteKeyPairOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *deleteKeyPairInput) ([]awsfront.Target, error) {
			if in.KeyName == "" && in.KeyPairID == "" {
				return nil, awsfault.Errorf(missingParameter, "The request must contain the parameter keyName or keyPairId")
			}
			if in.KeyPairID != "" {
				if err := ec2id.KeyPair.Check(in.KeyPairID); err != nil {
					return nil, err
				}
			}
			found, err := find(ctx, in)
			if err != nil {
				return nil, err
			}
			if found == nil {
				name := in.KeyName
				if name == "" {
					name = "*"
				}
				return []awsfront.Target{a.target(call, keyPairResource, name, nil, nil)}, nil
			}
			return []awsfront.Target{a.aboutKeyPair(call, found)}, nil
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *deleteKeyPairInput) (*deleteKeyPairOutput, error) {
			found, err := find(ctx, in)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			out := &deleteKeyPairOutput{Return: new(true)}
			if found != nil {
				out.KeyPairID = found.ID
				err = a.keyPairs().remove(ctx, found.ID)
			}
			return out, err
		},
	}
}
