# Perl's Redis, from Debian's package. Its methods are the commands, so those with a dot in their name are called by it.

use strict;
use warnings;
use Redis;

my ($port, $locked_port, $password) = @ARGV;
my $done = 0;

sub same {
    my ($what, $got, $expected) = @_;
    $got = join ' ', map { defined ? $_ : 'nothing' } @$got if ref $got eq 'ARRAY';
    die "$what: got $got, expected $expected\n" unless $got eq $expected;
    $done += 1;
}

sub connected { return Redis->new(server => "127.0.0.1:$_[0]", reconnect => 2, every => 20_000, @_[1 .. $#_]) }
sub call { my ($client, $command, @words) = @_; return $client->$command(@words) }

my $client = connected($port);
same('PING', $client->ping, 'PONG');
same('INFO', $client->info->{redis_mode}, 'standalone');
same('BF.RESERVE', call($client, 'BF.RESERVE', 'seen', '0.01', '1000'), 'OK');
same('BF.MADD', [call($client, 'BF.MADD', 'seen', 'ada', 'bob', 'ada')], '1 1 0');
same('BF.MEXISTS', [call($client, 'BF.MEXISTS', 'seen', 'ada', 'nobody')], '1 0');
same('CF.ADD', call($client, 'CF.ADD', 'have', 'ada'), '1');
same('CF.DEL', call($client, 'CF.DEL', 'have', 'ada'), '1');
same('TYPE', $client->type('seen'), 'MBbloom--');
my $added = 0;
my $add = 'BF.ADD';
$client->$add("user:$_", 'x', sub { $added += $_[0] }) for 0 .. 499;
$client->wait_all_responses;
same('a pipeline', $added, 500);
$client->multi;
call($client, 'BF.ADD', 'in one go', 'x');
same('MULTI', [$client->exec], '1');
my @many = map {"https://example.org/$_"} 0 .. 9_999;
call($client, 'BF.RESERVE', 'many', '0.001', '10000');
call($client, 'BF.MADD', 'many', @many);
same('BF.MEXISTS of 10 000', scalar(grep { $_ == 1 } call($client, 'BF.MEXISTS', 'many', @many)), 10_000);
my @every = map { chr($_) x 3 } 0 .. 255;
call($client, 'BF.MADD', "\0\r\n\xff", @every);
same('any bytes', scalar(grep { $_ == 1 } call($client, 'BF.MEXISTS', "\0\r\n\xff", @every)), 256);
my $other = connected($port);
my $mine = $client->client('ID');
same('CLIENT KILL', $other->client('KILL', 'ID', $mine), 1);
same('a client that was killed comes back', call($client, 'BF.EXISTS', 'many', $many[0]), 1);
my $unknown = eval { $client->nosuch('seen'); 1 } ? 'no error' : $@;
same('an unknown command', ($unknown =~ /ERR unknown command/ ? 1 : 0), 1);
my $closed = eval { call(connected($locked_port), 'BF.ADD', 'seen', 'x'); 1 } ? 'no error' : $@;
same('NOAUTH', ($closed =~ /NOAUTH/ ? 1 : 0), 1);
same('AUTH', call(connected($locked_port, password => $password), 'BF.ADD', 'seen', 'x'), '1');
print "$done checks\n";
