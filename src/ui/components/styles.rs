//! Lists of utility classes that several pages use. `style/utilities.css` has the classes of what a page shows dozens
//! of times, such as buttons, and `style/base.css` the styles of elements without a class, such as tables.

/// A frame around a list or a table.
pub const CARD: &str = "min-w-0 rounded-md border border-line bg-card";

/// A frame around anything else.
pub const CARD_PADDED: &str =
    "min-w-0 rounded-md border border-line bg-card px-4 pt-3 pb-4 [&>h2]:mb-2";

/// The line with the title of a [`CARD`].
pub const CARD_TITLE: &str =
    "flex flex-wrap items-baseline justify-between gap-x-3 gap-y-1 px-4 pt-2.5 pb-1.5";

/// The line with the title of a [`CARD_PADDED`].
pub const SECTION_TITLE: &str =
    "mb-2 flex flex-wrap items-baseline justify-between gap-x-3 gap-y-1";

/// The text in place of a list or table that is empty.
pub const EMPTY: &str = "px-4 py-5 text-muted";

/// Links to the pages above, close to the heading.
pub const CRUMB: &str = "-mb-3 text-sm text-muted wrap-anywhere [&>a:not(:hover)]:no-underline";

/// A notice that applies to the whole page, in the color of its text.
pub const NOTICE: &str = "flex items-start gap-2 rounded-md border border-line border-l-3 border-l-current bg-card px-4 py-2 \
    [&_a]:underline [&>span]:text-ink [&>svg]:mt-0.5";

/// The result of an action, in the color of its text.
pub const FLASH: &str =
    "flex items-center gap-2 rounded-md border bg-card px-3.5 py-2.5 wrap-anywhere";

/// A line that says that all is well.
pub const HEALTHY: &str = "flex min-h-9 items-center gap-2 rounded-md border border-line bg-card px-4 py-1.5 text-complete wrap-anywhere";

/// What a user must confirm; the color of its left border is added.
pub const QUESTION: &str = "min-w-0 rounded-md border border-l-3 border-line bg-card px-4 pt-3 pb-4 \
    [&>*+*]:mt-3 [&_form>*+div]:mt-3";

/// A list of names and values.
pub const FACTS: &str = "divide-y divide-line *:grid *:grid-cols-[112px_minmax(0,1fr)] *:gap-3 *:py-1.25 [&_dd]:wrap-anywhere \
    [&_dt]:text-muted";

/// A form with labels above its fields.
pub const FIELDS: &str = "flex flex-wrap items-end gap-x-4 gap-y-2 [--spacing-button:32px] *:max-w-full *:min-w-0 \
    [:where(section,details,div)>&]:mt-2 [&_label]:mb-1 [&_label]:block [&_label]:text-sm [&_label]:text-muted \
    max-sm:[&_:is(input,select)]:w-full max-sm:[&>div]:w-full";

/// The choice of jobs for a bulk operation.
pub const CHOICES: &str = "flex flex-wrap items-center gap-x-6 gap-y-2 border-b border-line px-4 py-2 [&_fieldset]:gap-x-4 [&_fieldset]:gap-y-1";

/// A list of options: name, value and buttons.
pub const OPTIONS: &str = "*:grid *:grid-cols-[minmax(0,1fr)_232px_232px] *:items-center *:gap-x-6 *:gap-y-1 *:border-t \
    *:border-line *:px-4 *:py-2 *:hover:bg-hover max-lg:*:grid-cols-[minmax(0,1fr)_auto] \
    max-lg:[&>li>:first-child]:col-span-full max-sm:*:py-2.5 [&_h3]:font-medium [&_h3>code]:text-sm";

/// Text that may be long: a payload, a message.
pub const PAYLOAD: &str =
    "max-h-105 overflow-auto rounded-md bg-page px-3 py-2.5 leading-4.5 whitespace-pre-wrap";

/// The numbers of the overview; the number of columns is added.
pub const TILES: &str = "grid gap-px overflow-hidden rounded-md border border-line bg-card";
