// SPDX-License-Identifier: Apache-2.0

package keypair

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
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/aws/sshkey"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

// KeptKeyPair is a key pair as it is kept: without its private half, which only the answer of CreateKeyPair has.
type KeptKeyPair struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	PublicKey   string `json:"publicKey"`
}

const (
	// KeyPairResource is the type of key pairs in ARNs, tags and records.
	KeyPairResource = "key-pair"
	maxKeyName      = 255
	// MaxKeyPairs is how many DescribeKeyPairs, which has no pages, can answer.
	MaxKeyPairs = 1000
)

// HasKeyPair makes the check whether the account has a key pair of a name.
func HasKeyPair(management client.Client) func(ctx context.Context, name string) (bool, error) {
	return func(ctx context.Context, name string) (bool, error) {
		all, err := awsrecord.Kind[KeptKeyPair]{Type: KeyPairResource}.List(ctx, management)
		if err != nil {
			return false, fmt.Errorf("listing key pairs: %w", err)
		}
		return slices.ContainsFunc(all, func(r awsrecord.Record[KeptKeyPair]) bool { return r.Data.Name == name }), nil
	}
}

// KeyPairs are the records of key pairs.
func (a *Actions) KeyPairs() ec2resource.Records[KeptKeyPair] {
	return ec2resource.Records[KeptKeyPair]{EC2: a.ec2, Kind: ec2id.KeyPair, Of: awsrecord.Kind[KeptKeyPair]{Type: KeyPairResource}}
}

// Register adds the actions to the front.
func (a *Actions) Register(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "CreateKeyPair", a.createKeyPair())
	ec2resource.Register(a.ec2, f, "ImportKeyPair", a.importKeyPair())
	ec2resource.Register(a.ec2, f, "DescribeKeyPairs", a.describeKeyPairs())
	ec2resource.Register(a.ec2, f, "DeleteKeyPair", a.deleteKeyPair())
	tagger := a.KeyPairs().Tagger(KeyPairResource, nil)
	tagger.About = func(ctx context.Context, call *awsfront.Call, id string) (awsfront.Target, error) {
		found, err := a.KeyPairs().Get(ctx, id)
		if err != nil {
			return awsfront.Target{}, err
		}
		return a.aboutKeyPair(call, found), nil
	}
	a.ec2.Tagged(tagger)
}

// aboutKeyPair is a key pair as IAM is asked about it, whose ARN has its name.
func (a *Actions) aboutKeyPair(call *awsfront.Call, r *ec2resource.Record[KeptKeyPair]) awsfront.Target {
	return a.ec2.Target(call, KeyPairResource, r.Data.Name, r.Tags, map[string][]string{"ec2:KeyPairName": {r.Data.Name}, "ec2:KeyPairType": {r.Data.Type}})
}

// aboutNewKeyPair is one that is to be made.
func (a *Actions) aboutNewKeyPair(call *awsfront.Call, name, kind string, specifications []ec2resource.TagSpecification) ([]awsfront.Target, error) {
	tags, err := ec2resource.ReadTags(specifications, KeyPairResource)
	if err != nil {
		return nil, err
	}
	target := a.ec2.Target(call, KeyPairResource, name, nil, map[string][]string{"ec2:KeyPairName": {name}, "ec2:KeyPairType": {kind}})
	return []awsfront.Target{ec2resource.RequestTags(target, tags[KeyPairResource])}, nil
}

type createKeyPairInput struct {
	DryRun                      bool
	KeyName, KeyType, KeyFormat string
	TagSpecifications           []ec2resource.TagSpecification
}

type createKeyPairOutput struct {
	KeyPairID, KeyName, KeyFingerprint, KeyMaterial string
	Tags                                            []awstag.Tag
}

func (a *Actions) createKeyPair() awsfront.Spec[createKeyPairInput, createKeyPairOutput] {
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
			if err := errors.Join(ec2resource.Only("KeyType", in.KeyType, sshkey.RSA, sshkey.ED25519), ec2resource.Only("KeyFormat", in.KeyFormat, "pem")); err != nil {
				return nil, err
			}
			out := &createKeyPairOutput{}
			made, err := a.makeKeyPair(ctx, in.KeyName, in.DryRun, in.TagSpecifications, func() (KeptKeyPair, error) {
				public, private, fingerprint, err := sshkey.New(kindOf(in))
				out.KeyMaterial = private
				return KeptKeyPair{in.KeyName, public.Type, fingerprint, public.String()}, err
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
	TagSpecifications []ec2resource.TagSpecification
}

type importKeyPairOutput struct {
	KeyPairID, KeyName, KeyFingerprint string
	Tags                               []awstag.Tag
}

func (a *Actions) importKeyPair() awsfront.Spec[importKeyPairInput, importKeyPairOutput] {
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
			made, err := a.makeKeyPair(ctx, in.KeyName, in.DryRun, in.TagSpecifications, func() (KeptKeyPair, error) {
				fingerprint, err := public.Fingerprint()
				return KeptKeyPair{in.KeyName, public.Type, fingerprint, public.String()}, err
			})
			if err != nil {
				return nil, err
			}
			return &importKeyPairOutput{made.ID, made.Data.Name, made.Data.Fingerprint, awsresource.ShownTags(made.Tags)}, nil
		},
	}
}

// makeKeyPair checks a request and keeps the pair that it makes. EC2 has no client tokens for key pairs: a name is
// given once.
func (a *Actions) makeKeyPair(ctx context.Context, name string, dry bool, specifications []ec2resource.TagSpecification, key func() (KeptKeyPair, error)) (*ec2resource.Record[KeptKeyPair], error) {
	ascii := !slices.ContainsFunc([]byte(name), func(b byte) bool { return b < ' ' || b > '~' })
	if name == "" || len(name) > maxKeyName || !ascii {
		return nil, awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.64q) for parameter KeyName is invalid. It must be of 1 to %d ASCII characters", name, maxKeyName)
	}
	tags, err := ec2resource.ReadTags(specifications, KeyPairResource)
	if err != nil {
		return nil, err
	}
	defer a.ec2.Locks.Hold("key pairs")()
	all, err := a.KeyPairs().List(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case slices.ContainsFunc(all, func(r ec2resource.Record[KeptKeyPair]) bool { return r.Data.Name == name }):
		return nil, awsfault.Errorf("InvalidKeyPair.Duplicate", "The keypair '%s' already exists.", name)
	case len(all) >= MaxKeyPairs:
		return nil, awsfault.Errorf("KeyPairLimitExceeded", "There are %d key pairs: Muster keeps at most %d", len(all), MaxKeyPairs)
	}
	if err := dryrun.Would(dry); err != nil {
		return nil, err
	}
	data, err := key()
	if err != nil {
		return nil, err
	}
	return a.KeyPairs().Create(ctx, data, tags[KeyPairResource], awsresource.Token{})
}

type describeKeyPairsInput struct {
	ec2resource.Filtered
	KeyNames, KeyPairIDs []string
	IncludePublicKey     bool
}

type describeKeyPairsOutput struct{ KeyPairs []keyPairInfo }

// keyPairInfo is a key pair as EC2 shows it.
type keyPairInfo struct {
	KeyPairID          string `filter:"key-pair-id"`
	KeyName            string `filter:"key-name"`
	KeyFingerprint     string `filter:"fingerprint"`
	KeyType, PublicKey string
	CreateTime         time.Time
	Tags               []awstag.Tag
}

func (a *Actions) describeKeyPairs() awsfront.Spec[describeKeyPairsInput, describeKeyPairsOutput] {
	return awsfront.Spec[describeKeyPairsInput, describeKeyPairsOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeKeyPairsInput) (*describeKeyPairsOutput, error) {
			all, err := a.KeyPairs().List(ctx)
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
			out.KeyPairs, _, err = ec2resource.Choose(a.ec2, call, keyPairNoun(), shown, in.KeyPairIDs, ec2resource.Paged{Filtered: in.Filtered})
			return out, err
		},
	}
}

func keyPairNoun() ec2resource.Noun[keyPairInfo] {
	return ec2resource.Noun[keyPairInfo]{
		Kind: ec2id.KeyPair, ID: func(k *keyPairInfo) string { return k.KeyPairID }, Tags: func(k *keyPairInfo) map[string]string { return awsresource.TagMap(k.Tags) },
		Fields: awsresource.FiltersOf[keyPairInfo](),
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
func (a *Actions) deleteKeyPair() awsfront.Spec[deleteKeyPairInput, deleteKeyPairOutput] {
	find := func(ctx context.Context, in *deleteKeyPairInput) (*ec2resource.Record[KeptKeyPair], error) {
		all, err := a.KeyPairs().List(ctx)
		i := slices.IndexFunc(all, func(r ec2resource.Record[KeptKeyPair]) bool {
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
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter keyName or keyPairId")
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
				return []awsfront.Target{a.ec2.Target(call, KeyPairResource, name, nil, nil)}, nil
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
				err = a.KeyPairs().Remove(ctx, found.ID)
			}
			return out, err
		},
	}
}
