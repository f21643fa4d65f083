import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Function;

/**
 * What Guava makes of our filters, and filters of its own for us. For every line of {@code plan}
 *
 * <pre>name, strategy (0 or 1), funnel, number of items, rate</pre>
 *
 * it reads {@code name.ours}, prints what it answers to every probe and says of its own accord, adds more items and writes
 * {@code name.continued}; then it fills an empty filter and writes {@code name.theirs}.
 */
public final class GuavaCheck {
    /** Items added to a filter that we began. */
    private static final int MORE = 500;

    private final Path folder;
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);

    private GuavaCheck(Path folder) {
        this.folder = folder;
    }

    public static void main(String[] arguments) throws IOException {
        GuavaCheck check = new GuavaCheck(Path.of(arguments[0]));
        for (String line : check.lines("plan")) {
            check.run(line.split("\t"));
        }
        check.out.flush();
    }

    private List<String> lines(String name) throws IOException {
        return Files.readAllLines(folder.resolve(name), StandardCharsets.UTF_8);
    }

    private void run(String[] plan) throws IOException {
        switch (plan[2]) {
            case "utf8":
                run(plan, Funnels.stringFunnel(StandardCharsets.UTF_8), "texts", text -> text);
                break;
            case "unencodedChars":
                run(plan, Funnels.unencodedCharsFunnel(), "texts", text -> text);
                break;
            case "bytes":
                run(plan, Funnels.byteArrayFunnel(), "texts", text -> text.getBytes(StandardCharsets.UTF_8));
                break;
            case "int":
                run(plan, Funnels.integerFunnel(), "ints", Integer::valueOf);
                break;
            case "long":
                run(plan, Funnels.longFunnel(), "longs", Long::valueOf);
                break;
            default:
                throw new IllegalArgumentException(plan[2]);
        }
    }

    private <T> void run(String[] plan, Funnel<? super T> funnel, String items, Function<String, T> parse)
            throws IOException {
        String name = plan[0];
        byte strategy = Byte.parseByte(plan[1]);
        int count = Integer.parseInt(plan[3]);
        List<String> members = lines(items + ".members");

        BloomFilter<T> ours = read(Files.readAllBytes(folder.resolve(name + ".ours")), funnel);
        StringBuilder answers = new StringBuilder();
        for (String probe : lines(items + ".probes")) {
            answers.append(ours.mightContain(parse.apply(probe)) ? '1' : '0');
        }
        out.printf("%s\t%s\t%x\t%d%n", name, answers, Double.doubleToLongBits(ours.expectedFpp()),
                ours.approximateElementCount());
        put(ours, members.subList(count, count + MORE), parse);
        write(ours, name + ".continued");

        BloomFilter<T> theirs = empty(funnel, count, Double.parseDouble(plan[4]), strategy);
        put(theirs, members.subList(members.size() - count, members.size()), parse);
        write(theirs, name + ".theirs");
    }

    /** Guava makes only filters of its newest strategy. The first byte of a stream is the strategy, and it reads all of them. */
    private static <T> BloomFilter<T> empty(Funnel<? super T> funnel, int count, double rate, byte strategy)
            throws IOException {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        BloomFilter.create(funnel, count, rate).writeTo(stream);
        byte[] bytes = stream.toByteArray();
        bytes[0] = strategy;
        return read(bytes, funnel);
    }

    private static <T> void put(BloomFilter<T> filter, List<String> items, Function<String, T> parse) {
        for (String item : items) {
            filter.put(parse.apply(item));
        }
    }

    @SuppressWarnings("unchecked")
    private static <T> BloomFilter<T> read(byte[] bytes, Funnel<? super T> funnel) throws IOException {
        return BloomFilter.readFrom(new ByteArrayInputStream(bytes), (Funnel<T>) funnel);
    }

    private void write(BloomFilter<?> filter, String name) throws IOException {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        filter.writeTo(stream);
        Files.write(folder.resolve(name), stream.toByteArray());
    }
}
